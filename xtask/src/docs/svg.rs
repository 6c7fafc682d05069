//! State diagrams: boxes where they are put, straight arrows between them, each with its label.
//!
//! The same machine gives the same bytes: every coordinate follows from the places by arithmetic and is
//! rounded to a tenth.

use std::collections::BTreeMap;
use std::fmt::Write;

/// A state and the middle of its box.
pub(super) struct Place {
    pub(super) name: String,
    pub(super) at: (f64, f64),
}

/// One transition: between which places, and what it is called.
pub(super) struct Arrow {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) label: String,
}

/// Half of a box.
const BOX: (f64, f64) = (60.0, 20.0);
/// How far arrows in both directions stand apart, from the middle.
const APART: f64 = 9.0;
const LINE: f64 = 15.0;
/// The width of a character of a label, a little too much.
const CHARACTER: f64 = 6.6;
const MARGIN: f64 = 30.0;

/// The diagram of `places` and `arrows`.
pub(super) fn diagram(title: &str, places: &[Place], arrows: &[Arrow]) -> String {
    let far = |of: fn(&Place) -> f64| places.iter().map(of).fold(0.0, f64::max);
    let (width, height) = (
        far(|place| place.at.0) + BOX.0 + MARGIN,
        far(|place| place.at.1) + BOX.1 + MARGIN,
    );
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" font-family=\"sans-serif\">\n\
         <title>{title}</title>\n\
         <defs><marker id=\"head\" viewBox=\"0 0 10 10\" refX=\"10\" refY=\"5\" markerWidth=\"8\" \
         markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0L10 5L0 10z\" fill=\"#345\"/></marker></defs>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    // Transitions between the same two states are one arrow with several labels.
    let mut joined: BTreeMap<(usize, usize), Vec<&str>> = BTreeMap::new();
    for arrow in arrows {
        joined
            .entry((arrow.from, arrow.to))
            .or_default()
            .push(&arrow.label);
    }
    let mut labels = String::new();
    for ((from, to), names) in &joined {
        let (Some(a), Some(b)) = (places.get(*from), places.get(*to)) else {
            continue;
        };
        let both = joined.contains_key(&(*to, *from));
        let line = Line::between(a.at, b.at, if both { APART } else { 0.0 });
        // Writing to a `String` does not fail.
        let _ = writeln!(
            svg,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#345\" stroke-width=\"1.4\" \
             marker-end=\"url(#head)\"/>",
            line.from.0, line.from.1, line.to.0, line.to.1
        );
        label(&mut labels, &line, both, names);
    }
    for place in places {
        let (x, y) = place.at;
        let _ = writeln!(
            svg,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"8\" fill=\"#eaf1f8\" stroke=\"#345\"{}/>\n\
             <text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"14\" text-anchor=\"middle\" fill=\"#123\">{}</text>",
            x - BOX.0,
            y - BOX.1,
            2.0 * BOX.0,
            2.0 * BOX.1,
            // What is not a state is dashed.
            if place.name.contains(' ') {
                " stroke-dasharray=\"4 3\""
            } else {
                ""
            },
            y + 5.0,
            place.name
        );
    }
    svg.push_str(&labels);
    svg.push_str("</svg>\n");
    svg
}

/// Writes the names of an arrow: on it, or on the outer side if another comes the other way.
fn label(svg: &mut String, line: &Line, both: bool, names: &[&str]) {
    let longest = names
        .iter()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or(0);
    let half = f64::from(u32::try_from(longest).unwrap_or(u32::MAX)) * CHARACTER / 2.0;
    let lines = f64::from(u32::try_from(names.len()).unwrap_or(u32::MAX));
    let out = if both {
        // As far as the box of the label reaches in that direction.
        half * line.side.0.abs() + LINE * lines / 2.0 * line.side.1.abs() + 3.0
    } else {
        0.0
    };
    let (x, y) = (
        f64::midpoint(line.from.0, line.to.0) + line.side.0 * out,
        f64::midpoint(line.from.1, line.to.1) + line.side.1 * out,
    );
    let top = y - LINE * lines / 2.0;
    // Writing to a `String` does not fail.
    let _ = writeln!(
        svg,
        "<rect x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"#fff\"/>",
        x - half,
        2.0 * half,
        LINE * lines
    );
    let mut base = top + LINE - 4.0;
    for name in names {
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{base:.1}\" font-size=\"12\" text-anchor=\"middle\" fill=\"#123\">{name}</text>"
        );
        base += LINE;
    }
}

/// The visible part of an arrow.
struct Line {
    from: (f64, f64),
    to: (f64, f64),
    /// To its right, seen along it.
    side: (f64, f64),
}

impl Line {
    /// From box to box, moved aside by `apart`.
    fn between(a: (f64, f64), b: (f64, f64), apart: f64) -> Self {
        let (dx, dy) = (b.0 - a.0, b.1 - a.1);
        let length = dx.hypot(dy).max(1.0);
        let side = (-dy / length, dx / length);
        // Where the moved line leaves the box around the origin, in either direction.
        let moved = (side.0 * apart, side.1 * apart);
        let leave = |dx: f64, dy: f64| {
            let along = |d: f64, at: f64, half: f64| {
                if d.abs() < f64::EPSILON {
                    f64::INFINITY
                } else {
                    (half - at * d.signum()) / d.abs()
                }
            };
            along(dx, moved.0, BOX.0).min(along(dy, moved.1, BOX.1))
        };
        let (start, end) = (leave(dx, dy), leave(-dx, -dy));
        Self {
            from: (a.0 + moved.0 + dx * start, a.1 + moved.1 + dy * start),
            to: (b.0 + moved.0 - dx * end, b.1 + moved.1 - dy * end),
            side,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_at_the_boxes_and_the_two_directions_stand_apart() {
        let there = Line::between((100.0, 100.0), (400.0, 100.0), APART);
        let back = Line::between((400.0, 100.0), (100.0, 100.0), APART);
        assert_eq!((there.from, there.to), ((160.0, 109.0), (340.0, 109.0)));
        assert_eq!((back.from, back.to), ((340.0, 91.0), (160.0, 91.0)));
        let down = Line::between((0.0, 0.0), (0.0, 100.0), 0.0);
        assert_eq!((down.from, down.to), ((0.0, 20.0), (0.0, 80.0)));
        let slant = Line::between((0.0, 0.0), (300.0, 400.0), APART);
        assert_eq!(slant.side, (-0.8, 0.6), "aside is at a right angle");
    }

    #[test]
    fn every_state_and_every_label_is_in_the_picture() {
        let place = |name: &str, x| Place {
            name: name.to_owned(),
            at: (x, 50.0),
        };
        let arrow = |from, to, label: &str| Arrow {
            from,
            to,
            label: label.to_owned(),
        };
        let places = [place("One", 100.0), place("Two", 300.0)];
        let arrows = [arrow(0, 1, "go"), arrow(0, 1, "also"), arrow(1, 0, "back")];
        let svg = diagram("T", &places, &arrows);
        for text in [
            "<title>T</title>",
            ">One<",
            ">Two<",
            ">go<",
            ">also<",
            ">back<",
        ] {
            assert!(svg.contains(text), "{text}");
        }
        assert_eq!(svg.matches("<line").count(), 2, "two labels, one arrow");
    }
}

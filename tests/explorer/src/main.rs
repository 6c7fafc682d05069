//! `model`: walks the host and reports; `cargo xtask model` runs it.
//!
//! Exit codes: 0 every property holds, 1 one does not, 2 the command line was not understood.

use regatta_explorer::report;
use regatta_explorer::world::{SIZES, Size, WORLDS, World};
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let asked = match ask(&words) {
        Ok(asked) => asked,
        Err(what) => return end(&what, 2),
    };
    let mut out = io::stdout().lock();
    let report = report::whole(&asked.worlds, asked.size, &mut out)
        .and_then(|()| report::cut(&WORLDS[0], &SIZES[0], &mut out));
    match report {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => end(&error.to_string(), 1),
    }
}

fn end(what: &str, code: u8) -> ExitCode {
    // Nobody is left to tell if stderr is closed too.
    let _ = writeln!(io::stderr(), "model: {what}");
    ExitCode::from(code)
}

/// What the command line asks for.
struct Asked {
    size: &'static Size,
    worlds: Vec<&'static World>,
}

fn ask(words: &[String]) -> Result<Asked, String> {
    let mut asked = Asked {
        size: &SIZES[0],
        worlds: WORLDS.iter().collect(),
    };
    for pair in words.chunks(2) {
        let [flag, name] = pair else {
            return Err(format!("`{}` needs a value", pair.join(" ")));
        };
        match flag.as_str() {
            "--size" => {
                let sizes: Vec<&str> = SIZES.iter().map(|size| size.name).collect();
                asked.size = Size::named(name)
                    .ok_or_else(|| format!("no size `{name}`: there are {}", sizes.join(", ")))?;
            }
            "--world" => {
                let known: Vec<&str> = WORLDS.iter().map(|world| world.name).collect();
                let world = World::named(name)
                    .ok_or_else(|| format!("no world `{name}`: there are {}", known.join(", ")))?;
                asked.worlds = vec![world];
            }
            _ => return Err(format!("unexpected `{flag}`: it takes --size and --world")),
        }
    }
    Ok(asked)
}

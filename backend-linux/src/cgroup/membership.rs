//! `/proc/self/cgroup`: in which group of each hierarchy the process is.

use super::{Controller, Hierarchy, lines, number};

/// A group of a hierarchy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Group<'a> {
    /// The hierarchy.
    pub hierarchy: Hierarchy,
    /// The path in it, as the process's namespace shows it.
    pub path: &'a [u8],
}

/// The groups of a process.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Membership<'a> {
    unified: Option<&'a [u8]>,
    cpu: Option<&'a [u8]>,
    cpuset: Option<&'a [u8]>,
    /// Lines that were understood.
    pub good_lines: usize,
    /// Lines that were not. Each may have been the one that matters.
    pub bad_lines: usize,
}

impl<'a> Membership<'a> {
    /// Reads the file.
    #[must_use]
    pub fn parse(text: &'a [u8]) -> Self {
        let mut membership = Self::default();
        for line in lines(text) {
            let understood = membership.line(line).is_some();
            membership.good_lines += usize::from(understood);
            membership.bad_lines += usize::from(!understood);
        }
        membership
    }

    /// `ID:CONTROLLERS:PATH`; the path may have colons of its own. Names of controllers are separated by
    /// commas, and a hierarchy without any has `name=`. The second hierarchy has the id zero and none.
    fn line(&mut self, line: &'a [u8]) -> Option<()> {
        let mut parts = line.splitn(3, |byte| *byte == b':');
        let (id, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let id = number(id)?;
        if path.first() != Some(&b'/') || path.contains(&0) {
            return None;
        }
        if id == 0 {
            return (controllers.is_empty() && self.unified.replace(path).is_none()).then_some(());
        }
        if controllers.is_empty() {
            return None;
        }
        for controller in controllers.split(|byte| *byte == b',') {
            let place = match controller {
                b"cpu" => &mut self.cpu,
                b"cpuset" => &mut self.cpuset,
                _ => continue,
            };
            if place.is_some() {
                return None;
            }
            *place = Some(path);
        }
        Some(())
    }

    /// The group by which `controller` rules the process. A controller is in one hierarchy at a time, and
    /// the first lists those that it has.
    #[must_use]
    pub fn group(&self, controller: Controller) -> Option<Group<'a>> {
        let v1 = match controller {
            Controller::Cpu => self.cpu,
            Controller::CpuSet => self.cpuset,
        };
        let group = |hierarchy| move |path| Group { hierarchy, path };
        v1.map(group(Hierarchy::V1))
            .or(self.unified.map(group(Hierarchy::V2)))
    }
}

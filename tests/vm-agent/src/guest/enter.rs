//! Becomes a command in a group, perhaps as another user and in namespaces of its own.
//!
//! A process puts itself into the group before it becomes the command, so that the command never ran
//! outside.

use super::failure::Failure;
use nix::mount::{MntFlags, umount2};
use nix::sched::{CloneFlags, unshare};
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// What of the groups a command is to see.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Sight {
    /// Everything.
    #[default]
    Host,
    /// Its group as the root, and a mount that shows no more: a container.
    Container,
    /// Its group as the root, and the host's mount: a namespace and no more.
    NamespaceOnly,
}

impl Sight {
    const ALL: [Self; 3] = [Self::Host, Self::Container, Self::NamespaceOnly];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Container => "container",
            Self::NamespaceOnly => "namespace-only",
        }
    }
}

/// The argument for "as it is".
pub(crate) const SAME: &str = "-";

/// `PROCS-FILE USER SIGHT COMMAND...`, with `-` for a file or user that stays.
pub(crate) fn run(words: &[&str]) -> Result<(), Failure> {
    let [procs, user, sight, program, arguments @ ..] = words else {
        return Err(Failure::Other(format!(
            "enter {words:?}: it takes a file, a user, a sight and a command"
        )));
    };
    let sight = Sight::ALL.into_iter().find(|known| known.name() == *sight);
    let sight = sight.ok_or_else(|| Failure::Other(format!("enter {words:?}: unknown sight")))?;
    if *procs != SAME {
        let own = std::process::id().to_string();
        fs::write(procs, own).map_err(Failure::io("write", procs))?;
    }
    if sight != Sight::Host {
        namespaces(sight)?;
    }
    let mut command = Command::new(program);
    command.args(arguments).env_clear();
    if *user != SAME {
        let id = user.parse().map_err(|error| {
            Failure::Other(format!("enter: user {user:?}: {error}: it takes a number"))
        })?;
        command.gid(id).uid(id);
    }
    Err(Failure::io("run", program)(command.exec()))
}

fn namespaces(sight: Sight) -> Result<(), Failure> {
    const ROOT: &str = super::group::Hierarchy::V2.root();
    unshare(CloneFlags::CLONE_NEWCGROUP | CloneFlags::CLONE_NEWNS)
        .map_err(|errno| Failure::io("leave the namespaces of", "/proc/self")(errno.into()))?;
    if sight == Sight::Container {
        umount2(ROOT, MntFlags::MNT_DETACH)
            .map_err(|errno| Failure::io("unmount", ROOT)(errno.into()))?;
        super::init::mount_new("cgroup2", ROOT, None)?;
    }
    Ok(())
}

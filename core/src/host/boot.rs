//! Setting a host up: the configuration and its checks.

use super::Host;
use crate::lane::{Lane, LaneConfig, LaneCounters, NO_HOME, Progress, Strikes};
use crate::past::Past;
use crate::role::{RoleId, RoleMask, RoleTable, RoleTableError, SeatKind};
use crate::seat::{MAX_SEATS, Seat, SeatId, SeatSpec};
use crate::time::{Duration, Instant};
use crate::unit::{List, Place, UnitRow, UnitTable};
use heapless::Vec;
use thiserror::Error;

/// How many units an internal producer keeps outstanding at most. Boot checks that the windows on a
/// lane fit its rows, so that a producer inside the process never meets a full intake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Who submits.
    pub producer: &'static str,
    /// To which lane.
    pub role: RoleId,
    /// How many units at once.
    pub units: u32,
}

/// What a host is made of.
#[derive(Clone, Copy, Debug)]
pub struct HostConfig<'a> {
    /// The roles.
    pub table: &'static RoleTable,
    /// One lane per role, in row order.
    pub lanes: &'a [LaneConfig],
    /// The seats.
    pub seats: &'a [SeatSpec],
    /// What the producers inside the process need.
    pub windows: &'a [Window],
    /// Δ, the interval of the backstop tick; 250 ms unless there is a reason.
    pub backstop: Duration,
    /// K, the ticks without movement after which a lane that could have moved is reported stuck; 8
    /// unless there is a reason.
    pub stuck_ticks: u32,
}

/// Why a host cannot be set up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum HostError {
    /// The role table does not check.
    #[error(transparent)]
    Table(#[from] RoleTableError),
    /// Not one lane per role.
    #[error("{lanes} lanes for {roles} roles: there must be one each")]
    Lanes {
        /// Lanes given.
        lanes: usize,
        /// Roles in the table.
        roles: usize,
    },
    /// The lanes reserve more rows than the storage has.
    #[error("the lanes reserve {reserved} rows and the storage has {storage}")]
    Storage {
        /// Rows that the lanes reserve together.
        reserved: u64,
        /// Rows given.
        storage: usize,
    },
    /// More seats than a mask has bits.
    #[error("{seats} seats: this host holds 1 to {most}")]
    Seats {
        /// Seats given.
        seats: usize,
        /// Seats it has room for.
        most: usize,
    },
    /// A seat serves a role that is not in the table, none at all, or several while it is pinned.
    #[error(
        "seat {seat} serves {roles:?}: it takes roles of the table, and exactly one if it is pinned"
    )]
    SeatRoles {
        /// The seat.
        seat: usize,
        /// What it serves.
        roles: RoleMask,
    },
    /// A lane is served by seats of different kinds.
    #[error(
        "role {role:?} is served by {first:?} and by {second:?} seats; its seats must be of one kind"
    )]
    MixedSeats {
        /// The role.
        role: RoleId,
        /// The kind of its first seat.
        first: SeatKind,
        /// The kind of another.
        second: SeatKind,
    },
    /// A lane is served by pins that the table does not give it, so its grant order has no step for
    /// them.
    #[error(
        "role {role:?} is served by {seat:?} seats: the table has it as {table:?}, so they must be that or Pooled"
    )]
    SeatKind {
        /// The role.
        role: RoleId,
        /// The kind of its seats.
        seat: SeatKind,
        /// The kind in the table.
        table: SeatKind,
    },
    /// A role with a fixed pin has more seats than that one.
    #[error("role {role:?} has {seats} fixed pins, and it takes exactly one")]
    FixedPins {
        /// The role.
        role: RoleId,
        /// How many seats it has.
        seats: usize,
    },
    /// A lane has rows and no seat, so its units would wait for ever.
    #[error("role {role:?} has {rows} rows and no seat that serves it")]
    NoSeat {
        /// The role.
        role: RoleId,
        /// Its rows.
        rows: u32,
    },
    /// A lane takes units and has no place in its queue, no key or no slot for them.
    #[error(
        "role {role:?}: a lane with rows needs a queue, keys and slots of at least 1 (keys at most {MAX_SEATS})"
    )]
    LaneSize {
        /// The role.
        role: RoleId,
    },
    /// The keys of a keyed lane and the keys of its seats do not match.
    #[error("role {role:?}: key {key} must be the key of exactly one seat, and is that of {seats}")]
    Keys {
        /// The role.
        role: RoleId,
        /// The key.
        key: u8,
        /// Seats that have it.
        seats: usize,
    },
    /// A window is on a role that is not in the table.
    #[error("producer {producer} has a window on role {role:?}, and the table has {roles} roles")]
    WindowRole {
        /// Who submits.
        producer: &'static str,
        /// The role named.
        role: RoleId,
        /// Roles in the table.
        roles: usize,
    },
    /// The windows of the producers on a lane exceed its rows.
    #[error(
        "role {role:?}: its producers may have {windows} units outstanding, and it has {rows} rows"
    )]
    Windows {
        /// The role.
        role: RoleId,
        /// The sum of the windows.
        windows: u64,
        /// Rows of the lane.
        rows: u32,
    },
    /// The backstop would never or always tick.
    #[error("backstop {backstop:?} with {stuck_ticks} stuck ticks: both must be greater than 0")]
    Backstop {
        /// The interval given.
        backstop: Duration,
        /// The ticks given.
        stuck_ticks: u32,
    },
}

impl<R: AsRef<[UnitRow]> + AsMut<[UnitRow]>> Host<R> {
    /// Sets a host of the largest size up over `rows`, whose content is overwritten.
    pub fn new(config: &HostConfig<'_>, rows: R) -> Result<Self, HostError> {
        Self::sized(config, rows)
    }
}

impl<R: AsRef<[UnitRow]> + AsMut<[UnitRow]>, const SEATS: usize, const ROLES: usize>
    Host<R, SEATS, ROLES>
{
    /// Sets a host up over `rows`, whose content is overwritten, with room for `SEATS` seats and
    /// `ROLES` roles.
    pub fn sized(config: &HostConfig<'_>, rows: R) -> Result<Self, HostError> {
        config.table.check()?;
        check_seats(config, SEATS)?;
        let roles = config.table.roles.len();
        if config.lanes.len() != roles {
            return Err(HostError::Lanes {
                lanes: config.lanes.len(),
                roles,
            });
        }
        if let Some(window) = config.windows.iter().find(|w| w.role.index() >= roles) {
            return Err(HostError::WindowRole {
                producer: window.producer,
                role: window.role,
                roles,
            });
        }
        if config.backstop == Duration::ZERO || config.stuck_ticks == 0 {
            return Err(HostError::Backstop {
                backstop: config.backstop,
                stuck_ticks: config.stuck_ticks,
            });
        }
        let reserved = config.lanes.iter().map(|lane| u64::from(lane.rows)).sum();
        let storage = rows.as_ref().len();
        if reserved > storage as u64 || reserved >= u64::from(u32::MAX) {
            return Err(HostError::Storage { reserved, storage });
        }
        let mut units = UnitTable::new(rows);
        let mut lanes = Vec::new();
        let mut next_row = 0;
        for (role, lane_config) in config.table.ids().zip(config.lanes) {
            let mut lane = lane(config, role, lane_config)?;
            for row in (next_row..next_row + lane_config.rows).rev() {
                units.push_front(&mut lane.free, row, Place::Free);
            }
            next_row += lane_config.rows;
            if lanes.push(lane).is_err() {
                return Err(RoleTableError::TooMany { roles }.into());
            }
        }
        let all = u64::MAX >> (MAX_SEATS - config.seats.len());
        Ok(Self {
            table: Past(config.table),
            backstop: config.backstop,
            stuck_ticks: config.stuck_ticks,
            units,
            lanes,
            seats: config.seats.iter().copied().map(Seat::new).collect(),
            resolved: List::EMPTY,
            idle: all,
            pinned: 0,
            loaded: 0,
            dead: 0,
            parked: 0,
            waiting: RoleMask::EMPTY,
            in_use: 0,
            keyed_in_use: 0,
            backstop_at: None,
            last_tick: Instant::ORIGIN,
            latched: false,
            closing: None,
            drain: Past(None),
            epoch: 0,
            pins: u8::try_from(MAX_SEATS).unwrap_or(u8::MAX),
            backed: RoleMask::EMPTY,
            stuck: RoleMask::EMPTY,
            stranded: RoleMask::EMPTY,
            counters: Past::default(),
        })
    }
}

fn check_seats(config: &HostConfig<'_>, most: usize) -> Result<(), HostError> {
    let seats = config.seats.len();
    if seats == 0 || seats > most.min(MAX_SEATS) {
        return Err(HostError::Seats {
            seats,
            most: most.min(MAX_SEATS),
        });
    }
    let known: RoleMask = config.table.ids().collect();
    for (seat, spec) in config.seats.iter().enumerate() {
        let (mut count, mut all_known) = (0, true);
        for role in spec.roles.iter() {
            count += 1;
            all_known &= known.contains(role);
        }
        if !all_known || count == 0 || (count > 1 && spec.kind != SeatKind::Pooled) {
            return Err(HostError::SeatRoles {
                seat,
                roles: spec.roles,
            });
        }
    }
    Ok(())
}

/// The seats that serve `role`, with their numbers.
fn serving<'a>(
    config: &HostConfig<'a>,
    role: RoleId,
) -> impl Iterator<Item = (&'a SeatSpec, u8)> + use<'a> {
    let seats = config.seats.iter().zip(0_u8..);
    seats.filter(move |(seat, _)| seat.roles.contains(role))
}

/// The kind of the seats that serve `role`, if any does; `table` is what the role table says.
fn seat_kind(
    config: &HostConfig<'_>,
    role: RoleId,
    table: SeatKind,
) -> Result<Option<SeatKind>, HostError> {
    let mut kinds = serving(config, role).map(|(seat, _)| seat.kind);
    let Some(first) = kinds.next() else {
        return Ok(None);
    };
    if let Some(second) = kinds.find(|kind| *kind != first) {
        return Err(HostError::MixedSeats {
            role,
            first,
            second,
        });
    }
    if first != SeatKind::Pooled && first != table {
        return Err(HostError::SeatKind {
            role,
            seat: first,
            table,
        });
    }
    let seats = serving(config, role).count();
    if first == SeatKind::FixedPin && seats > 1 {
        return Err(HostError::FixedPins { role, seats });
    }
    Ok(Some(first))
}

fn lane<const SEATS: usize>(
    config: &HostConfig<'_>,
    role: RoleId,
    lane: &LaneConfig,
) -> Result<Lane<SEATS>, HostError> {
    let spec = config.table.get(role).ok_or(RoleTableError::Empty)?;
    let serving = || serving(config, role);
    let kind = seat_kind(config, role, spec.seat)?;
    if lane.rows > 0 {
        if kind.is_none() {
            return Err(HostError::NoSeat {
                role,
                rows: lane.rows,
            });
        }
        if lane.queue == 0
            || lane.keys == 0
            || usize::from(lane.keys) > MAX_SEATS
            || lane.slots == Some(0)
        {
            return Err(HostError::LaneSize { role });
        }
    }
    let windows = config
        .windows
        .iter()
        .filter(|w| w.role == role)
        .map(|w| u64::from(w.units))
        .sum();
    if windows > u64::from(lane.rows) {
        return Err(HostError::Windows {
            role,
            windows,
            rows: lane.rows,
        });
    }
    let keyed = kind == Some(SeatKind::KeyedPin);
    let mut homes = Vec::new();
    if keyed {
        for key in 0..lane.keys {
            let mut at_home = serving().filter(|(seat, _)| seat.key == key);
            let home = at_home.next().map_or(NO_HOME, |(_, index)| index);
            let seats = usize::from(home != NO_HOME) + at_home.count();
            if seats != 1 || homes.push(home).is_err() {
                return Err(HostError::Keys { role, key, seats });
            }
        }
        if let Some((seat, _)) = serving().find(|(seat, _)| seat.key >= lane.keys) {
            return Err(HostError::Keys {
                role,
                key: seat.key,
                seats: 1,
            });
        }
    }
    Ok(Lane {
        cordon: spec.cordon,
        owns_receipts: spec.owns_receipts,
        keyed,
        rows: lane.rows,
        queue_cap: lane.queue,
        keys: lane.keys,
        slots: lane
            .slots
            .unwrap_or(u16::try_from(serving().count()).unwrap_or(u16::MAX)),
        seats: serving().map(|(_, index)| SeatId::new(index).bit()).sum(),
        homes,
        free: List::EMPTY,
        queue: List::EMPTY,
        backlog: List::EMPTY,
        queued: 0,
        running: 0,
        progress: Progress::Idle,
        cursor: 0,
        strikes: Strikes::default(),
        counters: Past(LaneCounters::default()),
    })
}

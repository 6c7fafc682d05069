//! Whether a role table can be used.

use super::{GrantStep, MAX_CONSUMERS, MAX_ROLES, RoleTable, SeatKind, ShareRule};
use thiserror::Error;

/// Why a role table cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum RoleTableError {
    /// No role at all.
    #[error("a role table needs at least one role")]
    Empty,
    /// More roles than a mask has bits.
    #[error("{roles} roles: a role table holds at most {MAX_ROLES}")]
    TooMany {
        /// How many there are.
        roles: usize,
    },
    /// A thread name would be cut.
    #[error("role {role}: its short name has {length} bytes and takes 1 to 7")]
    ShortName {
        /// Row of the role.
        role: usize,
        /// Length of the short name in bytes.
        length: usize,
    },
    /// A step names a row that does not exist.
    #[error("step {step} of the grant order names row {role}, and there are {roles}")]
    UnknownRole {
        /// Index of the step.
        step: usize,
        /// The row it names.
        role: usize,
        /// How many rows there are.
        roles: usize,
    },
    /// A role is missing from the grant order, stands there too often, or as the wrong kind.
    #[error(
        "role {role}: the grant order must hold one Pooled step for a pooled role, and a Pinned step \
         followed by a Claim step for a pinned one"
    )]
    Order {
        /// Row of the role.
        role: usize,
    },
    /// More consumers beside the roles than a budget has rows for.
    #[error("{consumers} consumers beside the roles: a table holds at most {MAX_CONSUMERS}")]
    TooManyConsumers {
        /// How many there are.
        consumers: usize,
    },
    /// A consumer that is not a role has a share that only a role can have.
    #[error("consumer {consumer}: its share is Fixed or Quarter; the other rules are for roles")]
    ConsumerShare {
        /// Row of the consumer.
        consumer: usize,
    },
    /// Two rows have the same name, or one has none.
    #[error("row {row}, counting the roles and then the consumers: its name is empty or taken")]
    Name {
        /// The later row: a role's, or the number of roles plus a consumer's.
        row: usize,
    },
    /// Two consumers would each take what the others leave.
    #[error("role {role}: a second consumer takes the rest of the quota; only one can")]
    SecondRest {
        /// Row of the second.
        role: usize,
    },
}

impl RoleTable {
    /// Whether the table can be used. Constant, so that a table in a `const` is checked by the build.
    pub const fn check(&self) -> Result<(), RoleTableError> {
        let roles = self.roles.len();
        if roles == 0 {
            return Err(RoleTableError::Empty);
        }
        if roles > MAX_ROLES {
            return Err(RoleTableError::TooMany { roles });
        }
        let mut step = 0;
        while step < self.order.len() {
            let role = self.order[step].role().index();
            if role >= roles {
                return Err(RoleTableError::UnknownRole { step, role, roles });
            }
            step += 1;
        }
        let mut rest = 0;
        let mut role = 0;
        while role < roles {
            let length = self.roles[role].short.len();
            if length == 0 || length > 7 {
                return Err(RoleTableError::ShortName { role, length });
            }
            if matches!(self.roles[role].share, ShareRule::Rest { .. }) {
                rest += 1;
                if rest > 1 {
                    return Err(RoleTableError::SecondRest { role });
                }
            }
            if !self.ordered(role) {
                return Err(RoleTableError::Order { role });
            }
            role += 1;
        }
        self.check_consumers()
    }

    const fn check_consumers(&self) -> Result<(), RoleTableError> {
        let consumers = self.consumers.len();
        if consumers > MAX_CONSUMERS {
            return Err(RoleTableError::TooManyConsumers { consumers });
        }
        let mut consumer = 0;
        while consumer < consumers {
            if !matches!(
                self.consumers[consumer].share,
                ShareRule::Fixed { .. } | ShareRule::Quarter { .. }
            ) {
                return Err(RoleTableError::ConsumerShare { consumer });
            }
            consumer += 1;
        }
        let mut row = 0;
        while row < self.roles.len() + consumers {
            let name = self.row_name(row);
            let mut taken = name.is_empty();
            let mut earlier = 0;
            while earlier < row {
                taken |= same(name, self.row_name(earlier));
                earlier += 1;
            }
            if taken {
                return Err(RoleTableError::Name { row });
            }
            row += 1;
        }
        Ok(())
    }

    const fn row_name(&self, row: usize) -> &'static str {
        if row < self.roles.len() {
            self.roles[row].name
        } else {
            self.consumers[row - self.roles.len()].name
        }
    }

    const fn ordered(&self, role: usize) -> bool {
        let (mut pooled, mut pinned, mut claim, mut claim_first) = (0, 0, 0, false);
        let mut step = 0;
        while step < self.order.len() {
            if self.order[step].role().index() == role {
                match self.order[step] {
                    GrantStep::Pooled(_) => pooled += 1,
                    GrantStep::Pinned(_) => pinned += 1,
                    GrantStep::Claim(_) => {
                        claim += 1;
                        claim_first = pinned == 0;
                    }
                }
            }
            step += 1;
        }
        match self.roles[role].seat {
            SeatKind::Pooled => pooled == 1 && pinned == 0 && claim == 0,
            SeatKind::KeyedPin | SeatKind::FixedPin => {
                pooled == 0 && pinned == 1 && claim == 1 && !claim_first
            }
        }
    }
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

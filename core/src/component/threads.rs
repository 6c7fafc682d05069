//! Thread demand: which component owns which threads, and whether the plan grants them.

use crate::plan::CensusRow;
use thiserror::Error;

/// The threads that one component will have of one resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ThreadClaim<'a> {
    /// The resource, as the plan's census calls it.
    pub resource: &'static str,
    /// The name of the component.
    pub owner: &'a str,
    /// How many.
    pub count: u16,
}

/// The components ask for more threads than the plan has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[error("{asked} threads of {resource} are claimed and the plan grants {granted}")]
pub struct DemandError {
    /// The resource.
    pub resource: &'static str,
    /// The sum of the claims.
    pub asked: u16,
    /// What the plan has; nothing if it does not know the resource.
    pub granted: u16,
}

/// Whether every claim is covered by a row of `census` that has threads of its own. Several components
/// may share a row, up to its count.
pub fn check_threads(claims: &[ThreadClaim<'_>], census: &[CensusRow]) -> Result<(), DemandError> {
    for claim in claims {
        let resource = claim.resource;
        let same = claims.iter().filter(|other| other.resource == resource);
        let asked = same.fold(0_u16, |sum, other| sum.saturating_add(other.count));
        let mut rows = census.iter().filter(|row| row.threads.is_some());
        let granted = rows
            .find(|row| row.resource == resource)
            .map_or(0, |row| row.count);
        if asked > granted {
            return Err(DemandError {
                resource,
                asked,
                granted,
            });
        }
    }
    Ok(())
}

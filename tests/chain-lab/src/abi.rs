//! What the lab calls on the contracts, and what they say in return.

use alloy_primitives::{B256, b256};
use alloy_sol_types::sol;

sol! {
    function transfer(address to, uint256 value) external returns (bool);
    function deflate(address holder, uint256 value) external;
    function setTax(uint16 bps) external;
    function balanceOf(address holder) external view returns (uint256);

    function createPair(address tokenA, address tokenB) external returns (address pair);
    function getPair(address tokenA, address tokenB) external view returns (address pair);

    function getReserves() external view returns (uint112 reserve0, uint112 reserve1, uint32 blockTimestampLast);
    function mint(address to) external returns (uint256 liquidity);
    function sync() external;
    function swap(uint256 amount0Out, uint256 amount1Out, address to, bytes data) external;
}

/// `keccak256("Sync(uint112,uint112)")`
pub(crate) const SYNC: B256 =
    b256!("0x1c411e9a96e071241c2f21f7726b17ae89e3cab4c78be50e062b03a9fffbbad1");

// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// What the executor asks of a constant-product pair.
interface IPair {
    function token0() external view returns (address);
    function token1() external view returns (address);
    function swap(uint256 amount0Out, uint256 amount1Out, address to, bytes calldata data) external;
}

/// What the executor asks of a token. Some return nothing from `transfer`: it is called by `_pay` alone.
interface IToken {
    function balanceOf(address holder) external view returns (uint256);
    function transfer(address to, uint256 amount) external returns (bool);
}

/// Runs a cycle over pairs without capital: the first pair is paid out of what the last one gives.
///
/// Invariants:
/// - Only the owner, who deployed it, starts anything.
/// - While a cycle runs, nothing else can start, and one caller alone is let into the callback, once: the pair that
///   was called last with a request to call back.
/// - A cycle that has run leaves at least `minProfit` more of the base token here than before, not after `expiryBlock`.
///   Else all of it is undone.
contract Executor {
    /// One swap of a cycle.
    struct Hop {
        /// The pair.
        address pool;
        /// Whether its token 0 goes in and its token 1 comes out.
        bool zeroForOne;
        /// What comes out.
        uint256 amountOut;
    }

    /// The caller is not the owner.
    error NotOwner();
    /// The block's number is past `expiryBlock`.
    error Expired(uint256 expiryBlock);
    /// The callback's caller is not the pair that was called, or not on our behalf.
    error NotThePool(address caller);
    /// A cycle without hops.
    error NoHops();
    /// The cycle gave less than was asked for; a loss counts as 0.
    error ProfitTooSmall(uint256 profit, uint256 minProfit);
    /// A cycle is running.
    error Busy();
    /// A token refused a transfer and gave no reason.
    error TransferFailed(address token);

    /// A cycle has run: what it left here of the base token, by its balances.
    event Settled(address indexed base, uint256 profit);

    /// Who deployed it.
    address public immutable owner;

    /// No caller: what `expected` holds while a cycle runs and no callback is awaited.
    address private constant NOBODY = address(1);

    /// Who may call back: 0 outside a cycle.
    address private transient expected;

    constructor() {
        owner = msg.sender;
    }

    /// Lets the owner in, while no cycle runs.
    modifier only() {
        if (msg.sender != owner) revert NotOwner();
        if (expected != address(0)) revert Busy();
        _;
    }

    /// Runs the cycle that begins and ends with `amountIn` of `base`.
    function execute(
        address base,
        uint256 amountIn,
        Hop[] calldata hops,
        uint256 minProfit,
        uint256 expiryBlock
    ) external only returns (uint256 profit) {
        if (block.number > expiryBlock) revert Expired(expiryBlock);
        if (hops.length == 0) revert NoHops();
        uint256 before = IToken(base).balanceOf(address(this));
        expected = hops[0].pool;
        _swap(hops[0].pool, hops[0].zeroForOne, hops[0].amountOut, address(this), abi.encode(base, amountIn, hops));
        expected = address(0);
        uint256 afterwards = IToken(base).balanceOf(address(this));
        profit = afterwards > before ? afterwards - before : 0;
        // With a minimum of 0 a loss must not pass for a profit of 0.
        if (afterwards < before || profit < minProfit) revert ProfitTooSmall(profit, minProfit);
        emit Settled(base, profit);
    }

    /// The first pair has given its output: the other pairs are paid, and then it is.
    function uniswapV2Call(address sender, uint256, uint256, bytes calldata data) external {
        if (msg.sender != expected) revert NotThePool(msg.sender);
        if (sender != address(this)) revert NotThePool(sender);
        expected = NOBODY;
        (address base, uint256 amountIn, Hop[] memory hops) = abi.decode(data, (address, uint256, Hop[]));
        if (hops.length > 1) {
            address given = hops[0].zeroForOne ? IPair(msg.sender).token1() : IPair(msg.sender).token0();
            _pay(given, hops[1].pool, hops[0].amountOut);
        }
        for (uint256 i = 1; i < hops.length; ++i) {
            address to = i + 1 < hops.length ? hops[i + 1].pool : address(this);
            _swap(hops[i].pool, hops[i].zeroForOne, hops[i].amountOut, to, "");
        }
        _pay(base, msg.sender, amountIn);
    }

    /// Sends what is here to `to`.
    function withdraw(address token, address to, uint256 amount) external only {
        expected = NOBODY;
        _pay(token, to, amount);
        expected = address(0);
    }

    /// Has the pair give `amountOut` of the token on the other side of what goes in.
    function _swap(address pool, bool zeroForOne, uint256 amountOut, address to, bytes memory data) private {
        (uint256 out0, uint256 out1) = zeroForOne ? (uint256(0), amountOut) : (amountOut, uint256(0));
        IPair(pool).swap(out0, out1, to, data);
    }

    /// Transfers, whether the token answers with true or with nothing. Its reason for a refusal is passed on.
    function _pay(address token, address to, uint256 amount) private {
        (bool done, bytes memory answer) = token.call(abi.encodeCall(IToken.transfer, (to, amount)));
        if (!done) {
            if (answer.length == 0) revert TransferFailed(token);
            assembly ("memory-safe") {
                revert(add(answer, 32), mload(answer))
            }
        }
        bool accepted = answer.length == 0 ? token.code.length > 0 : answer.length >= 32 && uint256(bytes32(answer)) == 1;
        if (!accepted) revert TransferFailed(token);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import "../Executor.sol";

/// A token as plain as can be, whose `transfer` may return nothing or false.
contract PlainToken {
    mapping(address => uint256) public balanceOf;
    bool private immutable silent;
    bool private refuses;

    constructor(bool silent_) {
        silent = silent_;
    }

    function mint(address to, uint256 amount) external {
        balanceOf[to] += amount;
    }

    function refuse(bool refuses_) external {
        refuses = refuses_;
    }

    function transfer(address to, uint256 amount) external {
        require(balanceOf[msg.sender] >= amount, "too little");
        balanceOf[msg.sender] -= amount;
        balanceOf[to] += amount;
        bool silent_ = silent;
        bool done = !refuses;
        assembly ("memory-safe") {
            mstore(0, done)
            return(0, mul(32, iszero(silent_)))
        }
    }
}

/// A pair with the constant-product rule, which may misuse its caller.
contract PlainPair {
    enum Evil {
        No,
        CallsBackTwice,
        Enters
    }

    PlainToken public token0;
    PlainToken public token1;
    uint256 private reserve0;
    uint256 private reserve1;
    Evil private evil;

    constructor(PlainToken a, PlainToken b) {
        token0 = a;
        token1 = b;
    }

    function sync() external {
        reserve0 = token0.balanceOf(address(this));
        reserve1 = token1.balanceOf(address(this));
    }

    function become(Evil evil_) external {
        evil = evil_;
    }

    function swap(uint256 out0, uint256 out1, address to, bytes calldata data) external {
        if (out0 > 0) token0.transfer(to, out0);
        if (out1 > 0) token1.transfer(to, out1);
        if (data.length > 0) {
            Executor(to).uniswapV2Call(msg.sender, out0, out1, data);
            if (evil == Evil.CallsBackTwice) Executor(to).uniswapV2Call(msg.sender, out0, out1, data);
            if (evil == Evil.Enters) {
                Executor(to).execute(address(token0), 1, new Executor.Hop[](0), 0, type(uint256).max);
            }
        }
        uint256 balance0 = token0.balanceOf(address(this));
        uint256 balance1 = token1.balanceOf(address(this));
        uint256 in0 = balance0 > reserve0 - out0 ? balance0 - (reserve0 - out0) : 0;
        uint256 in1 = balance1 > reserve1 - out1 ? balance1 - (reserve1 - out1) : 0;
        uint256 k = (balance0 * 1000 - in0 * 3) * (balance1 * 1000 - in1 * 3);
        require(k >= reserve0 * reserve1 * 1000000, "UniswapV2: K");
        reserve0 = balance0;
        reserve1 = balance1;
    }
}

/// Every promise of the executor, tried when this is made: creating it succeeds, or says which promise is broken. The
/// argument is whether its tokens return nothing. The block's number must be above 0.
contract ExecutorCheck {
    Executor private executor = new Executor();

    constructor(bool silent) {
        PlainToken a = new PlainToken(silent);
        PlainToken b = new PlainToken(silent);
        PlainPair p = new PlainPair(a, b);
        PlainPair q = new PlainPair(a, b);
        a.mint(address(p), 1e21);
        b.mint(address(p), 2e21);
        a.mint(address(q), 1e21);
        b.mint(address(q), 1e21);
        p.sync();
        q.sync();
        require(executor.owner() == address(this), "the owner is not who made it");

        uint256 amountIn = 1e19;
        uint256 between = given(amountIn, 1e21, 2e21);
        uint256 out = given(between, 1e21, 1e21);
        uint256 gain = out - amountIn;
        Executor.Hop[] memory hops = new Executor.Hop[](2);
        hops[0] = Executor.Hop(address(p), true, between);
        hops[1] = Executor.Hop(address(q), false, out);

        refused(address(a), amountIn, hops, gain + 1, block.number, Executor.ProfitTooSmall.selector);
        refused(address(a), amountIn, hops, gain, block.number - 1, Executor.Expired.selector);
        // Error(string): the pair's, for a wei too little.
        refused(address(a), amountIn - 1, hops, gain, block.number, 0x08c379a0);
        refused(address(a), amountIn, new Executor.Hop[](0), 0, block.number, Executor.NoHops.selector);
        p.become(PlainPair.Evil.CallsBackTwice);
        refused(address(a), amountIn, hops, gain, block.number, Executor.NotThePool.selector);
        p.become(PlainPair.Evil.Enters);
        refused(address(a), amountIn, hops, gain, block.number, Executor.NotOwner.selector);
        p.become(PlainPair.Evil.No);
        try executor.uniswapV2Call(address(executor), 0, 0, "") {
            revert("called back outside a cycle");
        } catch (bytes memory error) {
            require(bytes4(error) == Executor.NotThePool.selector, "not NotThePool");
        }
        if (!silent) {
            a.refuse(true);
            refused(address(a), amountIn, hops, gain, block.number, Executor.TransferFailed.selector);
            a.refuse(false);
        }

        require(executor.execute(address(a), amountIn, hops, gain, block.number) == gain, "another profit");
        require(a.balanceOf(address(executor)) == gain, "the profit is not there");
        require(b.balanceOf(address(executor)) == 0, "something else is there");
        executor.withdraw(address(a), address(7), gain);
        require(a.balanceOf(address(7)) == gain, "not withdrawn");
    }

    /// What a pair gives.
    function given(uint256 amountIn, uint256 reserveIn, uint256 reserveOut) private pure returns (uint256) {
        return amountIn * 997 * reserveOut / (reserveIn * 1000 + amountIn * 997);
    }

    function refused(
        address base,
        uint256 amountIn,
        Executor.Hop[] memory hops,
        uint256 minProfit,
        uint256 expiry,
        bytes4 selector
    ) private {
        try executor.execute(base, amountIn, hops, minProfit, expiry) {
            revert("it ran");
        } catch (bytes memory error) {
            require(bytes4(error) == selector, string.concat("another error: ", string(error)));
        }
    }
}

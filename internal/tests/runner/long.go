package main

// onlyLong are the tests that `make test` leaves to `make test-long`: what they promise is held there by something smaller
// (docs/testing.md says by what), or is one program more of a kind.
var onlyLong = []string{
	// Floods: what a daemon keeps of them is held by the session's own tests (internal/core/session).
	"TestAFloodOfRSYNsLeavesNothingBehind",
	// Unmodified programs: of each kind the others stay.
	"TestChrony", "TestGitDaemon", "TestGitOverHTTP", "TestNghttpd", "TestElinks", "TestLighttpd", "TestJava", "TestSCP", "TestRedisBenchmark", "TestProgramsGoOnWhileHostsMove",
	// Orders of an upgrade, and versions that must be built: one crash amid an upgrade stays.
	"TestUpgradeOneByOneLosesNothingInAnyOrder", "TestUpgradeToAVersionThatIsUnknownIsRefusedWithTheCure",
	// What is away: the table of what works stays, with each part alone and each two daemons.
	"TestConnectionsBegunBeforeTwoGoAway", "TestALeaderThatIsStoppedIsReplaced", "TestANewLeaderPlansWhoServesWithoutADaemon",
	// Tunnels and guests, once more together, and a host whose tunnel never comes.
	"TestGuestsGoThroughTheirHostsTunnels", "TestAHostWithoutATunnelSaysWhyWithinSeconds",
	// Weights of slow servers by their counts: how a slow program is judged is held by internal/host/hostd.
	"TestSlowListenersKeepTheirWeights",
	// FRR once more: its routes come, go and are followed in a lab (TestAFailedLinkMakesFRRReconvergeAndTrafficFollows).
	"TestAFRRThatDiesIsNamed", "TestRoutesOfOSPFComeAndGoByBothSources",
	// Large models: ten thousand services, of which the property tests of internal/core/plan have few.
	"TestTenThousandServicesReachARouterAndOneChangeTouchesOne",
}

// alone are tests of what binds a path: beside others it is the machine's processors that do. A long run has them in a stage of
// their own.
var alone = []string{"TestExplainNamesWhatBinds"}

// byOneGoroutine are tests of loads that one goroutine carries: the race detector finds nothing in them, and takes ten times
// as long. The stage "tests" has them.
var byOneGoroutine = []string{
	// internal/host/mobility: 20,000 messages of attackers, and 10,000 flows, between hosts that a test's one loop carries.
	"TestAFloodOfUnknownSendersIsMetered", "TestAnUnknownClientIsHeardInAFloodOfRESUMEs", "TestTenThousandFlowsMove",
	// emu: a million packets over one line; what a chain allocates, which the detector adds to.
	"TestAMillionPacketsKeepRateDelayAndLoss", "TestPacketsOfAChainAllocateNothing",
}

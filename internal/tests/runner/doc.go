// Command runner runs the tests of the tree, stage after stage, and says what failed so that the end of its output is
// enough to know why (docs/testing.md).
//
//	runner check         what needs no root
//	runner all           make test: each promise once
//	runner long          make test-long: each promise on each data plane, floods, soaks
//	runner all race      the stages alone that have "race" in their names
//	runner steady -test TestName [-runs 50] [-package ./dir] [-noise=false] [-race]
//
// gotestsum runs go test and keeps what it says as events. What failed by chance is told from what is broken by running it
// again alone, once everything else of its stage has ended: a test that passes then is unsteady, which is printed and does
// not fail the run. That is a way to know, not a way to pass: at most five tests in a run get it, and none that is marked
// as one of safety, that met a data race, or whose package crashed.
package main

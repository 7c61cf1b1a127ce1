// Package safety marks the tests that nobody may let pass by a second try: those whose failure, once, means that somebody's
// bytes were wrong, a record was lost, somebody was let in, or something was left behind on a machine.
//
// The mark is an attribute of the test (testing.T.Attr), so it stands in the test's own first line, and the runner
// (internal/tests/runner) reads it from the output of go test.
package safety

// Key is the name of the attribute.
const Key = "safety"

// A Promise is what a test of safety is about.
type Promise string

// The promises that there are.
const (
	Bytes  Promise = "wrong bytes"               // what arrives is what was sent
	Record Promise = "a lost record"             // what was confirmed is there afterwards
	Door   Promise = "somebody let in"           // who may not, cannot
	Trace  Promise = "something left behind"     // who ends, or leaves, takes all along
	Flow   Promise = "a connection that was cut" // a live flow outlives what it is promised to outlive
)

// Test marks a test, before it does anything that may fail.
func Test(t interface{ Attr(key, value string) }, what Promise) { t.Attr(Key, string(what)) }

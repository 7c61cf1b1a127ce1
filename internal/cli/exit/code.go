// Package exit is how a command ends: the exit codes, an error with its code and a hint at what to do, and the one line
// that people read of it.
package exit

// A Code is what the process returns. The values are part of the interface: docs/operate.md.
type Code int

// The exit codes.
const (
	OK          Code = 0
	Failed      Code = 1
	Usage       Code = 2
	NotFound    Code = 3
	Refused     Code = 4
	Unreachable Code = 5
	Missing     Code = 6
	Unmet       Code = 7
	Warned      Code = 8
)

// Codes are all of them, with what they mean.
var Codes = []struct {
	Code    Code
	Meaning string
}{
	{OK, "done"},
	{Failed, "failed for a reason that none of the others names"},
	{Usage, "bad command line or bad input: an unknown flag, a malformed name, a topology file with an error"},
	{NotFound, "no such service, host, flow, lab or file"},
	{Refused, "refused by policy or state: the name is taken, the service still has instances, the last instance would go, somebody else changed it meanwhile, the controller's disk is full"},
	{Unreachable, "no daemon or controller answers"},
	{Missing, "a permission, a kernel feature or a program is missing"},
	{Unmet, "it ran, but what it checks does not hold: bench --check, demo, lab run, doctor, diff, upgrade --check, host drain --dry-run; status: something is critical"},
	{Warned, "status: nothing is critical, and there are warnings"},
}

package health

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

func number(n int) string { return strconv.Itoa(n) }

// count is "1 host", "2 hosts".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if stem, ok := strings.CutSuffix(thing, "y"); ok && !strings.ContainsAny(stem[len(stem)-1:], "aeou") { // "entries", "days"
		return number(n) + " " + stem + "ies"
	}
	return number(n) + " " + thing + "s"
}

// on is a command that is run on that machine: the comment makes the line one that can be pasted there. Of a lab's
// machine it is run from outside.
func (s Snapshot) on(command, machine string) string {
	switch {
	case machine == "":
		return command
	case s.Lab != "":
		return "scaffold lab exec --lab " + s.Lab + " " + machine + " -- " + command
	}
	return command + "  # on " + machine
}

// ask is a command of ours about this network: of a lab's it is said which, for the machine may be in another network.
func (s Snapshot) ask(command string) string {
	if s.Lab != "" {
		command += " --lab " + s.Lab
	}
	return "scaffold " + command
}

// askHost is ask for what a host's daemon answers itself.
func (s Snapshot) askHost(command, host string) string {
	if s.Lab != "" {
		command += " --host " + host
	}
	return s.ask(command)
}

// start is the command that starts a daemon on the machines.
func (s Snapshot) start(daemon string, machines ...string) string {
	if s.Lab == "" {
		return s.on("systemctl start scaffold-"+daemon, list(machines))
	}
	var all []string
	for _, m := range machines {
		all = append(all, s.ask("lab start "+m))
	}
	return strings.Join(all, " && ")
}

// forGood follows a command behind whose comment it stands: what is done where the machine does not come back.
func (s Snapshot) forGood(command string) string {
	separator := "; "
	if s.Lab != "" { // there is no comment yet
		separator = "  # "
	}
	return separator + "if it is gone for good: " + s.ask(command)
}

// logs is the command that shows what a daemon said last; machine "" is this one, whose name is own.
func (s Snapshot) logs(daemon, machine, own string) string {
	if s.Lab != "" { // a lab's daemons have no unit: internal/lab keeps their logs here
		return "tail -n 50 /run/scaffold/lab/" + s.Lab + "/" + cmp.Or(machine, own) + "/" + daemon + ".log"
	}
	return s.on("journalctl -u scaffold-"+daemon+" -n 50", machine)
}

// size is a number of bytes for people.
func size(bytes uint64) string {
	for _, u := range []struct {
		of   uint64
		unit string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if bytes >= u.of {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(bytes)/float64(u.of)), ".0") + " " + u.unit
		}
	}
	return fmt.Sprintf("%d B", bytes)
}

// span is a time for people, in its largest unit.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return count(max(0, int(d/time.Second)), "second")
	case d < time.Hour:
		return count(int(d/time.Minute), "minute")
	case d < 48*time.Hour:
		return count(int(d/time.Hour), "hour")
	}
	return count(int(d/(24*time.Hour)), "day")
}

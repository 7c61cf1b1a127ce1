package file

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// An Action is one thing that happens to a lab: a step of a timeline or a command of the CLI.
type Action struct {
	Verb    string
	Node    string
	Program string         // "" means the whole node
	Service string         // weight, drain, undrain
	Weight  uint32         // weight
	Signal  syscall.Signal // kill
	Mode    string         // drain: "wait", "shed", "" as the service's policy says
	Peer    string         // cut, unplug, remove, heal: the link to this node alone; link: its other end; move: from there
	To      string         // move: the node that the host is plugged into
	Gap     time.Duration  // move: with no link, or with First with both
	First   bool           // move: the new link before the old one goes
	OneWay  bool           // link: only from Node to Peer
	Set     []Pair         // link: parameters and their values
	Argv    []string       // exec
	Fault
}

// verbs and how each is written, for messages.
var verbs = map[string]string{
	"start":   "start NODE[/PROGRAM]",
	"kill":    "kill NODE[/PROGRAM] [SIGNAL]",
	"stop":    "stop NODE[/PROGRAM]",
	"cont":    "cont NODE[/PROGRAM]",
	"restart": "restart NODE[/PROGRAM]",
	"cut":     "cut NODE [PEER]",
	"unplug":  "unplug NODE [PEER]",
	"remove":  "remove NODE PEER",
	"heal":    "heal NODE [PEER]",
	"move":    "move HOST FROM TO [gap TIME] [first]",
	"link":    "link NODE PEER PARAMETER VALUE... or link NODE->PEER PARAMETER VALUE...",
	"weight":  "weight SERVICE HOST NUMBER",
	"drain":   "drain SERVICE HOST [wait|shed]",
	"undrain": "undrain SERVICE HOST",
	"exec":    "exec NODE: COMMAND",

	"fail":      "fail NODE, fail NODE PEER, or fail NODE:PEER for the node's interface alone",
	"repair":    "repair NODE, repair NODE PEER, or repair NODE:PEER",
	"partition": "partition NODE,NODE... | NODE,NODE...",
	"unite":     "unite",
	"flap":      "flap NODE PEER every TIME times N",
	"upgrade":   "upgrade PROGRAM SHARE% [seed N] [PARAMETER=VALUE...]",
}

// Beside reports whether the action may take its time, so that a timeline does not wait for it.
func (a Action) Beside() bool { return a.Verb == "exec" || a.Verb == "move" || a.Verb == "flap" }

// Verbs are the words that an action may begin with.
func Verbs() []string {
	names := make([]string, 0, len(verbs))
	for v := range verbs {
		names = append(names, v)
	}
	slices.Sort(names)
	return names
}

// ParseAction reads one action as a timeline writes it. Whether the names exist is for check to say.
func ParseAction(text string) (Action, error) {
	verb, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	form, ok := verbs[verb]
	if !ok {
		return Action{}, fmt.Errorf("unknown action %q; expected one of %s", verb, strings.Join(Verbs(), ", "))
	}
	a := Action{Verb: verb}
	if !a.parse(rest) {
		return Action{}, fmt.Errorf("action %q: expected %q", text, form)
	}
	return a, nil
}

func (a *Action) parse(rest string) bool {
	if a.isFault() {
		return a.parseFault(rest)
	}
	if a.Verb == "exec" {
		node, command, ok := strings.Cut(rest, ":")
		a.Node = strings.TrimSpace(node)
		argv, err := SplitArgv(command)
		a.Argv = argv
		return ok && err == nil && a.Node != ""
	}
	words := strings.Fields(rest)
	if len(words) == 0 {
		return false
	}
	switch a.Verb {
	case "link":
		return a.parseLink(words)
	case "weight":
		return a.parseWeight(words)
	case "drain", "undrain":
		return a.parseDrain(words)
	case "move":
		return a.parseMove(words)
	case "remove":
		if len(words) == 2 {
			a.Node, a.Peer = words[0], words[1]
		}
		return len(words) == 2
	case "cut", "unplug", "heal":
		a.Node = words[0]
		if len(words) == 2 {
			a.Peer = words[1]
		}
		return len(words) <= 2
	}
	program := false
	a.Node, a.Program, program = strings.Cut(words[0], "/")
	if a.Node == "" || program && a.Program == "" {
		return false
	}
	if a.Verb == "kill" {
		return a.parseSignal(words[1:])
	}
	return len(words) == 1
}

func (a *Action) parseWeight(words []string) bool {
	if len(words) != 3 {
		return false
	}
	w, err := strconv.ParseUint(words[2], 10, 16)
	a.Service, a.Node, a.Weight = words[0], words[1], uint32(w)
	return err == nil
}

func (a *Action) parseDrain(words []string) bool {
	if len(words) == 3 && a.Verb == "drain" && (words[2] == "wait" || words[2] == "shed") {
		a.Mode, words = words[2], words[:2]
	}
	if len(words) == 2 {
		a.Service, a.Node = words[0], words[1]
	}
	return len(words) == 2
}

// parseLink reads "a b delay 20ms loss 1%" and "a->b delay 20ms".
func (a *Action) parseLink(words []string) bool {
	if a.Node, a.Peer, a.OneWay = strings.Cut(words[0], "->"); !a.OneWay {
		if len(words) < 2 {
			return false
		}
		a.Peer = words[1]
		words = words[1:]
	}
	words = words[1:]
	for i := 0; i+1 < len(words); i += 2 {
		a.Set = append(a.Set, Pair{words[i], words[i+1]})
	}
	return a.Node != "" && a.Peer != "" && len(words) > 0 && len(words)%2 == 0
}

func (a *Action) parseSignal(words []string) bool {
	a.Signal = syscall.SIGKILL
	if len(words) == 0 {
		return true
	}
	name := strings.TrimPrefix(strings.TrimPrefix(strings.ToUpper(words[0]), "-"), "SIG")
	if n, err := strconv.Atoi(name); err == nil {
		a.Signal = syscall.Signal(n)
	} else {
		a.Signal = unix.SignalNum("SIG" + name)
	}
	return len(words) == 1 && a.Signal > 0 && a.Signal < 65
}

// String writes the action as ParseAction reads it.
func (a Action) String() string {
	target := a.Node
	if a.Program != "" {
		target += "/" + a.Program
	}
	switch {
	case a.isFault():
		return a.faultString()
	case a.Verb == "link":
		return a.linkString()
	case a.Verb == "exec":
		return "exec " + a.Node + ": " + joinArgv(a.Argv)
	case a.Verb == "weight":
		return fmt.Sprintf("weight %s %s %d", a.Service, a.Node, a.Weight)
	case a.Service != "":
		return strings.TrimSpace(a.Verb + " " + a.Service + " " + a.Node + " " + a.Mode)
	case a.Verb == "move":
		return a.moveString()
	case a.Peer != "":
		return a.Verb + " " + a.Node + " " + a.Peer
	case a.Verb == "kill" && a.Signal != syscall.SIGKILL:
		name := strings.TrimPrefix(unix.SignalName(a.Signal), "SIG")
		return "kill " + target + " " + cmp.Or(name, strconv.Itoa(int(a.Signal))) // those of real time have no names
	}
	return a.Verb + " " + target
}

func (a Action) linkString() string {
	text := "link " + a.Node + " " + a.Peer
	if a.OneWay {
		text = "link " + a.Node + "->" + a.Peer
	}
	for _, s := range a.Set {
		text += " " + s.Key + " " + s.Value
	}
	return text
}

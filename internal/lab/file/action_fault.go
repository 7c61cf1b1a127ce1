package file

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// A Fault is what an action breaks or mends, besides its Node and Peer.
type Fault struct {
	NIC   bool          // fail, repair: the node's interface towards Peer, not the link
	Parts [][]string    // partition: nodes that are to stay together
	Every time.Duration // flap: from one fault to the next
	Times int           // flap
	Runs  string        // upgrade: the program
	Share float64       // upgrade: of the emulated routers
	Seed  uint64        // upgrade: which ones
}

// parseFault reads what follows the verb.
func (a *Action) parseFault(rest string) bool {
	words := strings.Fields(rest)
	switch a.Verb {
	case "fail", "repair":
		return a.parseFail(words)
	case "partition":
		return a.parsePartition(rest)
	case "unite":
		return len(words) == 0
	case "flap":
		return a.parseFlap(words)
	}
	return a.parseUpgrade(words)
}

func (a *Action) parseFail(words []string) bool {
	if len(words) == 0 || len(words) > 2 {
		return false
	}
	a.Node, a.Peer, a.NIC = strings.Cut(words[0], ":")
	switch {
	case a.NIC:
		return a.Node != "" && a.Peer != "" && len(words) == 1
	case len(words) == 2:
		a.Peer = words[1]
	}
	return true
}

func (a *Action) parsePartition(rest string) bool {
	seen := map[string]bool{}
	for part := range strings.SplitSeq(rest, "|") {
		nodes := strings.FieldsFunc(part, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
		for _, n := range nodes {
			if seen[n] {
				return false
			}
			seen[n] = true
		}
		if len(nodes) == 0 {
			return false
		}
		a.Parts = append(a.Parts, nodes)
	}
	return true
}

// maxFlaps bounds how often a link flaps by one action.
const maxFlaps = 10000

func (a *Action) parseFlap(words []string) bool {
	if len(words) != 6 || words[2] != "every" || words[4] != "times" {
		return false
	}
	a.Node, a.Peer = words[0], words[1]
	every, err := time.ParseDuration(words[3])
	times, bad := strconv.Atoi(words[5])
	a.Every, a.Times = every, times
	return err == nil && bad == nil && every > 0 && every <= maxGap && times > 0 && times <= maxFlaps
}

func (a *Action) parseUpgrade(words []string) bool {
	if len(words) < 2 {
		return false
	}
	share, percent := strings.CutSuffix(words[1], "%")
	v, err := strconv.ParseFloat(share, 64)
	if !percent || err != nil || !(v > 0 && v <= 100) {
		return false
	}
	a.Runs, a.Share, words = words[0], v/100, words[2:]
	if len(words) >= 2 && words[0] == "seed" {
		if a.Seed, err = strconv.ParseUint(words[1], 0, 64); err != nil {
			return false
		}
		words = words[2:]
	}
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		if !ok || key == "" {
			return false
		}
		a.Set = append(a.Set, Pair{key, value})
	}
	return true
}

// faultString writes the action as parseFault reads it.
func (a Action) faultString() string {
	switch a.Verb {
	case "fail", "repair":
		if a.NIC {
			return a.Verb + " " + a.Node + ":" + a.Peer
		}
		return strings.TrimSpace(a.Verb + " " + a.Node + " " + a.Peer)
	case "partition":
		parts := make([]string, len(a.Parts))
		for i, p := range a.Parts {
			parts[i] = strings.Join(p, ",")
		}
		return "partition " + strings.Join(parts, " | ")
	case "flap":
		return fmt.Sprintf("flap %s %s every %v times %d", a.Node, a.Peer, a.Every, a.Times)
	case "upgrade":
		return a.upgradeString()
	}
	return a.Verb
}

func (a Action) upgradeString() string {
	text := fmt.Sprintf("upgrade %s %s%%", a.Runs, strconv.FormatFloat(a.Share*100, 'g', -1, 64))
	if a.Seed != 0 {
		text += fmt.Sprintf(" seed %d", a.Seed)
	}
	for _, s := range a.Set {
		text += " " + s.Key + "=" + s.Value
	}
	return text
}

// Chosen are the routers that an upgrade reaches: the same for the same seed.
func (f *File) Chosen(a Action) []*Node {
	all := f.Of(Emulated)
	r := rand.New(rand.NewPCG(a.Seed, 0))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:int(math.Ceil(a.Share*float64(len(all))))]
}

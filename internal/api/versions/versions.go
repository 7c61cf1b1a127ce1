package versions

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// A Range is the versions that a program speaks, both ends included. The zero Range is that of programs from before
// versions were told: they speak 1.
type Range struct{ From, To uint32 }

// ours are what this build speaks.
var ours = map[string]Range{
	agent:  {1, 2}, // 2: both sides tell their versions
	schema: {0, 1}, // 0: records from before the number was stored
	trunk:  {1, 2}, // 2: TAKEOVER and TAKEN may be said
}

// The names, as Pretend knows them.
const (
	agent  = "agent"
	schema = "schema"
	trunk  = "trunk"
)

// Agent is what this build speaks on the streams between hosts or routers and the controller.
func Agent() Range { return pretended(agent) }

// Schema is which forms of the stored state this build reads; it writes the last.
func Schema() Range { return pretended(schema) }

// Trunk is what this build speaks between boost agents.
func Trunk() Range { return pretended(trunk) }

func (r Range) String() string {
	if r.From == r.To {
		return strconv.FormatUint(uint64(r.To), 10)
	}
	return fmt.Sprintf("%d to %d", r.From, r.To)
}

// Told is the range that a peer has told, or that of one that tells none.
func Told(from, to uint32) Range {
	if to == 0 {
		return Range{1, 1}
	}
	return Range{from, to}
}

// Has reports whether v is in the range.
func (r Range) Has(v uint32) bool { return r.From <= v && v <= r.To }

// Answered is the range of a controller that has chosen a version; one from before chooses none.
func Answered(version uint32) Range {
	if version == 0 {
		version = 1
	}
	return Range{version, version}
}

// Agree is the highest version of the agent protocol that both speak. Its error names what is to be upgraded; me and
// peer are how the two are called there, "this controller" and "router r1".
func (r Range) Agree(me, peer string, theirs Range) (uint32, error) {
	return r.AgreeOn("the agent protocol", me, peer, theirs)
}

// AgreeOn is Agree about something else, "the trunk protocol".
func (r Range) AgreeOn(what, me, peer string, theirs Range) (uint32, error) {
	if theirs.From > theirs.To {
		return 0, fmt.Errorf("%s says that it speaks versions %d to %d of %s, which is no range", peer, theirs.From, theirs.To, what)
	}
	if v := min(r.To, theirs.To); v >= max(r.From, theirs.From) {
		return v, nil
	}
	older, newer := me, peer
	if theirs.To < r.From {
		older, newer = peer, me
	}
	return 0, fmt.Errorf("%s speaks version %s of %s, %s %s: upgrade %s, or go back with %s; `scaffold upgrade` shows who runs what",
		peer, theirs, what, me, r, older, newer)
}

// Pretend is the variable that makes a build say that it speaks other versions: "agent=3-4,schema=7". It shows what a
// version to come would get from this one, and tests use it.
const Pretend = "SCAFFOLD_PRETEND_VERSIONS"

func pretended(name string) Range { return parse(os.Getenv(Pretend), name, ours[name]) }

// parse finds the range of a name in text as Pretend has it; ours where it is not there.
func parse(text, name string, ours Range) Range {
	for part := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		from, to, isRange := strings.Cut(value, "-")
		if !isRange {
			to = from
		}
		f, err1 := strconv.ParseUint(from, 10, 32)
		t, err2 := strconv.ParseUint(to, 10, 32)
		if key == name && err1 == nil && err2 == nil {
			return Range{uint32(f), uint32(t)}
		}
	}
	return ours
}

package boostd

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/core/lane"
	"scaffold.dev/scaffold/internal/tests/safety"
)

func TestTheExampleIsRead(t *testing.T) {
	s, err := Read("../../../examples/boost/boostd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "east" || len(s.Ports) != 2 || len(s.Agents) != 1 || s.Agents[0].Name != "west" || len(s.Lanes) != 1 || s.Lanes[0].Port != 443 || s.Protection != frame.Sealed || s.Control != "bbr" || s.Connections.String() != "4" {
		t.Errorf("%+v", s)
	}
}

// good is a file without a mistake; lines of it are replaced.
const good = `name: x
door: 192.0.2.1
ports: [p0]
key: k
agents:
  y: {door: "[2001:db8::1]:99", key: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=}
lanes:
- {client: 192.0.2.0/24, server: 198.51.100.0/24, near: [x], far: [y]}
`

func TestWhatIsWrongInTheFileIsSaidWithItsLine(t *testing.T) {
	if _, err := Parse("f", []byte(good)); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct{ old, new, says string }{
		"empty":        {good, "", "f:1: the file is empty"},
		"unknown key":  {"key: k", "kye: k", `unknown key "kye"`},
		"missing":      {"key: k\n", "", "key is missing"},
		"door":         {"door: 192.0.2.1", "door: here", "f:2:7: door: expected an address"},
		"any address":  {"door: 192.0.2.1", `door: "0.0.0.0:1"`, "door: expected an address of one machine"},
		"no ports":     {"ports: [p0]", "ports: []", "ports: expected one at least"},
		"key":          {"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "abc", "expected the other agent's public key"},
		"itself":       {"  y:", "  x:", `"x" is this agent itself`},
		"unknown":      {"far: [y]", "far: [z]", `agent "z"`},
		"prefix":       {"192.0.2.0/24", "192.0.2.9/24", "is 192.0.2.0/24 meant?"},
		"families":     {"198.51.100.0/24", "2001:db8::/64", "two families"},
		"no far agent": {", far: [y]", "", "lacks an agent"},
		"accept":       {"far: [y]}", "far: [y], accept: sometimes}", "accept: expected one of answered, at-once"},
		"overlap":      {"lanes:\n", "lanes:\n- {client: 192.0.2.0/25, server: 198.51.100.7, port: 80, near: [x], far: [y]}\n", "have connections in common"},
		"clear":        {"key: k", "key: k\nprotect: none", "open networks"},
		"both":         {"key: k", "key: k\ncontrollers: [http://192.0.2.9:23728]", "key: the controllers say"},
		"no endpoint":  {"key: k", "controllers: [here]", "controllers: "},
		"credentials":  {"key: k", "key: k\ncredentials: /x", "without controllers nobody gives any"},
		"key-for":      {"key: k", "key: k\nkey-for: 1h", "key-for: without controllers nobody says"},
		"how long":     {"key: k\n", "controllers: [http://192.0.2.9:23728]\nkey-for: often\n", `key-for: expected a duration, as in 720h, or 0 for good; found "often"`},
		"no number":    {"key: k", "key: k\nconnections: many", `f:5:14: connections: expected a number from 1 to 64, or auto, found "many"`},
		"none":         {"key: k", "key: k\nconnections: 0", `connections: expected a number from 1 to 64, or auto, found "0"`},
		"too many":     {"key: k", "key: k\nconnections: 65", `connections: expected a number from 1 to 64, or auto, found "65"`},
		"two numbers":  {"key: k", "key: k\nconnections: [1, 4]", "connections: expected a number from 1 to 64, or auto, found a list"},
		"nothing":      {"key: k", "key: k\nconnections:", "connections: expected a number from 1 to 64, or auto, found nothing"},
		"no control":   {"key: k", "key: k\ncontrol: reno", `f:5:10: control: expected one of bbr, cubic, found "reno"`},
		"no path":      {"key: k", "key: k\npaths: [here]", "f:5:9: door: expected an address"},
		"no address":   {"key: k", "key: k\npaths: [{limit: 3}]", "paths: each needs a door"},
		"twice":        {"key: k", "key: k\npaths: [192.0.2.1]", "paths: 192.0.2.1 is named twice"},
		"theirs twice": {"y: {", "y: {paths: [\"2001:db8::1\"], ", "agents: y: 2001:db8::1 is named twice"},
		"many paths":   {"key: k", "key: k\npaths: [10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.4, 10.0.0.5, 10.0.0.6, 10.0.0.7, 10.0.0.8]", "at most 8 addresses"},
		"much":         {"key: k", "key: k\nmemory: 9999999", "memory, in MiB: expected a number"},
	} {
		_, err := Parse("f", []byte(strings.Replace(good, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want that it says %q", what, err, c.says)
		}
	}
}

// What the file leaves open follows from the kernel: with BBR four connections, without as many as are worth it. What it says
// stands, but for BBR where the kernel has none, of which an operator is told.
func TestConnectionsFollowFromTheirControl(t *testing.T) {
	for _, c := range []struct {
		file    string
		allowed bool
		want    string
		warns   bool
	}{
		{"", true, "bbr 4, up to 32 where the other agent wants more or each is limited", false},
		{"", false, "cubic auto, 1 to 32", false},
		{"control: bbr\n", true, "bbr 4, up to 32 where the other agent wants more or each is limited", false},
		{"control: bbr\n", false, "cubic auto, 1 to 32", true},
		{"control: cubic\n", true, "cubic auto, 1 to 32", false},
		{"control: cubic\nconnections: 2\n", true, "cubic 2", false},
		{"connections: 64\n", true, "bbr 64", false},
		{"connections: 7\n", false, "cubic 7", false},
		{"connections: auto\n", true, "bbr auto, 1 to 32", false},
		{"connections: 1\n", true, "bbr 1", false},
	} {
		s, err := Parse("f", []byte(good+c.file))
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		s.choose(c.allowed, slog.New(slog.NewTextHandler(&log, nil)))
		if got := s.Control + " " + s.Connections.String(); got != c.want || strings.Contains(log.String(), "level=WARN") != c.warns {
			t.Errorf("%q, BBR allowed %v: %s, want %s; %s", c.file, c.allowed, got, c.want, log.String())
		}
	}
}

// A further path is an address, or one with what it takes.
func TestFurtherPathsAreRead(t *testing.T) {
	text := strings.Replace(good, "key: k", "key: k\nlimit: 8\npaths: [203.0.113.1, {door: \"[2001:db8::7]:99\", limit: 80}]", 1)
	s, err := Parse("f", []byte(strings.Replace(text, "y: {", "y: {paths: [203.0.113.2], ", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Paths) != 2 || s.Paths[0].At.String() != "203.0.113.1:23731" || s.Paths[0].Limit != 0 || s.Paths[1].At.String() != "[2001:db8::7]:99" || s.Paths[1].Limit != 1e7 || s.Shape.Limit != 1e6 {
		t.Errorf("%+v", s)
	}
	if o := s.Agents[0]; len(o.More) != 1 || o.More[0].String() != "203.0.113.2:23731" {
		t.Errorf("%+v", o)
	}
}

func TestControllersTakeThePlaceOfKeyAgentsAndLanes(t *testing.T) {
	s, err := Parse("f", []byte("name: x\ndoor: 192.0.2.1\nports: [p0]\ncontrollers: [https://192.0.2.9:23728]\n"))
	if err != nil || len(s.Controllers) != 1 || s.Credentials != DefaultCredentials || s.Key != "" {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestALaneHasTheSameNumberInTwoFiles(t *testing.T) {
	a, err := Parse("a", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	other := strings.NewReplacer("name: x", "name: y", "  y:", "  x:", "door: 192.0.2.1", `door: "[2001:db8::1]:99"`).Replace(good)
	b, err := Parse("b", []byte(strings.Replace(other, "lanes:\n", "lanes:\n- {client: 10.0.0.0/8, server: 172.16.0.0/12, near: [y], far: [x]}\n", 1)))
	if err != nil {
		t.Fatal(err)
	}
	at, err := Parse("c", []byte(strings.Replace(good, "far: [y]", "far: [y], accept: at-once", 1))) // the far agent's file need not say it
	if err != nil || !at.Lanes[0].AtOnce || a.Lanes[0].AtOnce || at.Lanes[0].Number != a.Lanes[0].Number {
		t.Errorf("%+v, %v; without: %+v", at.Lanes, err, a.Lanes)
	}
	if a.Lanes[0].Number != b.Lanes[1].Number || b.Lanes[0].Number == b.Lanes[1].Number {
		t.Errorf("numbers %d; %d and %d", a.Lanes[0].Number, b.Lanes[0].Number, b.Lanes[1].Number)
	}
}

func TestAKeyIsMadeOnceAndKeptFromOthers(t *testing.T) {
	safety.Test(t, safety.Door)
	path := filepath.Join(t.TempDir(), "dir", "key")
	first, made, err := Key(path)
	if err != nil || !made {
		t.Fatal(made, err)
	}
	again, made, err := Key(path)
	if err != nil || made || !first.Equal(again) {
		t.Errorf("another key, or none: %v %v", made, err)
	}
	os.Chmod(path, 0o644)
	if _, _, err := Key(path); err == nil || !strings.Contains(err.Error(), "can be read by others") {
		t.Errorf("a key that all can read: %v", err)
	}
	os.Chmod(path, 0o600)
	os.WriteFile(path, []byte("no key"), 0o600)
	if _, _, err := Key(path); err == nil || !strings.Contains(err.Error(), "no private key") {
		t.Errorf("a file that holds none: %v", err)
	}
}

func FuzzSettings(f *testing.F) {
	f.Add([]byte(good))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse("f", text)
		if err != nil {
			return
		}
		for _, l := range s.Lanes {
			if l.Check() != nil {
				t.Errorf("a lane that is none was read: %+v", l)
			}
		}
	})
}

// An agent that nobody tells what its machine forwards, but its own file, would end what it does not carry.
func TestAnAgentByItselfNeedsAMachineThatForwards(t *testing.T) {
	var said strings.Builder
	log := slog.New(slog.NewTextHandler(&said, nil))
	alone, led := Settings{}, Settings{Controllers: []string{"192.0.2.9:23728"}}
	if err := alone.mindForwarding(lane.IPv4, false, log); err == nil || !strings.Contains(err.Error(), "would end here: sysctl -w net.ipv4.ip_forward=1") {
		t.Errorf("alone: %v", err)
	}
	if err := alone.mindForwarding(0, false, log); err != nil || said.Len() > 0 {
		t.Errorf("of a machine that forwards: %v, %s", err, said.String())
	}
	if err := errors.Join(alone.mindForwarding(lane.IPv4, true, log), led.mindForwarding(lane.IPv6, false, log)); err != nil || strings.Count(said.String(), "forwards nothing") != 2 {
		t.Errorf("one that carries connections, and one that has a controller: %v, %s", err, said.String())
	}
}

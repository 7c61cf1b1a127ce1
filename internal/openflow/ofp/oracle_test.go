package ofp

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

var update = flag.Bool("update", false, "write testdata/ofctl.txt anew: the diff is what to look at")

// ofctl is Open vSwitch's own decoder.
func ofctl(t *testing.T) string { return nstest.Program(t, "ovs-ofctl", "openvswitch-common") }

// begins is what the decoder prints first of each message.
var begins = regexp.MustCompile(`(?m)^[A-Z]+_[A-Z_]+( request| reply)? \(OF1\.\d\) \(xid=`)

// decode has the decoder print messages and returns the text of each.
func decode(t *testing.T, messages []Message) []string {
	t.Helper()
	var stream []byte
	for _, m := range messages {
		var err error
		if stream, err = m.Append(stream); err != nil {
			t.Fatalf("Append(%+v): %v", m, err)
		}
	}
	file := filepath.Join(t.TempDir(), "stream")
	if err := os.WriteFile(file, stream, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(ofctl(t), "-vconsole:off", "ofp-parse", file).CombinedOutput()
	if err != nil {
		t.Fatalf("ovs-ofctl ofp-parse: %v\n%s", err, out)
	}
	texts := split(string(out))
	if len(texts) != len(messages) {
		t.Fatalf("ovs-ofctl printed %d messages of %d:\n%s", len(texts), len(messages), out)
	}
	return texts
}

// split cuts the decoder's output; what is in a bundle stays with what puts it there.
func split(out string) (texts []string) {
	starts := begins.FindAllStringIndex(out, -1)
	for i := 0; i < len(starts); i++ {
		from, to := starts[i][0], len(out)
		if strings.Contains(out[from:starts[i][1]], "BUNDLE_ADD") {
			i++
		}
		if i+1 < len(starts) {
			to = starts[i+1][0]
		}
		texts = append(texts, strings.TrimSpace(out[from:to]))
	}
	return texts
}

// TestOpenVSwitchReadsTheSamples compares what Open vSwitch makes of each with what was looked at once.
func TestOpenVSwitchReadsTheSamples(t *testing.T) {
	var got strings.Builder
	for _, text := range decode(t, sampleMessages()) {
		if strings.Contains(text, "decode error") {
			t.Errorf("Open vSwitch refuses:\n%s", text)
		}
		fmt.Fprintf(&got, "%s\n\n", text)
	}
	const file = "testdata/ofctl.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	wants, gots := strings.Split(string(want), "\n\n"), strings.Split(got.String(), "\n\n")
	for i := range max(len(wants), len(gots)) {
		if i >= len(wants) || i >= len(gots) || wants[i] != gots[i] {
			t.Fatalf("%s differs at message %d (-update writes it anew):\n got %q\nwant %q", file, i, at(gots, i), at(wants, i))
		}
	}
}

func at(texts []string, i int) string {
	if i >= len(texts) {
		return "nothing"
	}
	return texts[i]
}

func sampleMessages() (all []Message) {
	for _, s := range samples() {
		for _, v := range versions(s.version) {
			all = append(all, Message{v, xid, s.body})
		}
	}
	return all
}

func TestOpenVSwitchReadsEveryField(t *testing.T) {
	var all []Message
	var want []string
	for _, f := range fields {
		for _, v := range versions(0) {
			all = append(all, Message{v, xid, FlowMod{Match: f.match}})
			want = append(want, " ADD priority=0,"+f.want+" actions=drop")
		}
	}
	for i, text := range decode(t, all) {
		if !strings.HasSuffix(text, want[i]) {
			t.Errorf("%v: ovs-ofctl reads %s\nwant ...%s", all[i].Body.(FlowMod).Match, text, want[i])
		}
	}
}

func TestOpenVSwitchReadsEveryAction(t *testing.T) {
	var all []Message
	var want []string
	match := Match{Uint(EthType, 0x86dd), Uint(VLANVID, VLANPresent|1)}
	for _, s := range steps {
		m := match
		if _, ok := s.action.(PopMPLS); ok {
			m = Match{Uint(EthType, 0x8847)}
		}
		for _, v := range versions(s.version) {
			all = append(all, Message{v, xid, FlowMod{Match: m, Instructions: Apply(s.action)}})
			want = append(want, " actions="+s.want)
		}
	}
	for i, text := range decode(t, all) {
		if !strings.HasSuffix(text, want[i]) {
			t.Errorf("%+v: ovs-ofctl reads %s\nwant ...%s", all[i].Body, text, want[i])
		}
	}
}

// spelled are names that Open vSwitch has from elsewhere than the specification.
var spelled = map[string]string{
	"OFPTFFC_BAD_TYPE": "OFPBPC_BAD_TYPE", "OFPTFFC_BAD_LEN": "OFPBPC_BAD_LEN", "OFPTFFC_BAD_ARGUMENT": "OFPBPC_BAD_VALUE",
	"OFPBRC_BAD_MULTIPART": "OFPBRC_BAD_STAT", "OFPBRC_BAD_EXPERIMENTER": "OFPBRC_BAD_VENDOR",
	"OFPBRC_BAD_EXP_TYPE": "OFPBRC_BAD_SUBTYPE", "OFPBRC_IS_SLAVE": "OFPBRC_IS_SECONDARY",
	"OFPBAC_BAD_EXPERIMENTER": "OFPBAC_BAD_VENDOR", "OFPBAC_BAD_EXP_TYPE": "OFPBAC_BAD_VENDOR_TYPE",
	"OFPMMFC_BAD_BAND_DETAIL": "OFPMMFC_BAD_BAND_VALUE",
}

// TestErrorsHaveTheirNames asks Open vSwitch for the name of every error that we know. Those that it
// does not know it shows by number.
func TestErrorsHaveTheirNames(t *testing.T) {
	var all []Message
	for kind, k := range errorKinds {
		for code := range k.codes {
			for _, v := range versions(0) {
				all = append(all, Message{v, xid, Error{Kind: kind, Code: uint16(code), Data: make([]byte, 8)}})
			}
		}
	}
	known := 0
	for i, text := range decode(t, all) {
		_, name, _ := strings.Cut(strings.Split(text, "\n")[0], "): ")
		if !strings.HasPrefix(name, "OFP") || strings.Contains(name, " ") {
			continue
		}
		known++
		if e := all[i].Body.(Error); e.Name() != name && spelled[e.Name()] != name {
			t.Errorf("%v kind %d code %d: we say %s, Open vSwitch %s", all[i].Version, e.Kind, e.Code, e.Name(), name)
		}
	}
	if known < 200 {
		t.Errorf("Open vSwitch knows %d of %d errors, want most", known, len(all))
	}
}

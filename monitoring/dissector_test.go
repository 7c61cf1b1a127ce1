package monitoring

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"scaffold.dev/scaffold/emu/pcap"
	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

var (
	here, there = sid.Locator(0xfd5d000000010101), sid.Locator(0xfd5d000000010201)
	first       = here.Addr(1<<63 | 1)
	service     = sid.ServiceID{SS: 1, Suffix: 0x20000}
	claim       = wire.Claim{Stable: first, Epoch: 3, Seen: 2, Socket: 1<<63 | 2, Quote: 1<<63 | 3, Chain: []sid.SocketID{1<<63 | 1}}
	proof       = wire.Auth{Certificates: []wire.Certificate{{Locator: here, NotBefore: 1, NotAfter: 2}}, Signature: make([]byte, 64)}
	succeeded   = wire.Auth{Certificates: proof.Certificates, Succession: &wire.Succession{Origin: wire.Key(make([]byte, 32)), NotBefore: 1, NotAfter: 2}, Signature: proof.Signature}
)

// told is what tshark is to make of each message, by field.
var told = []struct {
	message wire.Message
	fields  map[string]string
}{
	{wire.Hello{Service: true, Relay: true, RelayPort: 4711, Locator: here, Name: "r1", Port: "eth0"},
		map[string]string{"type": "1", "name": "r1", "port": "eth0", "locator": "fd5d:0:1:101::/64", "hello.relay_port": "4711", "hello.service": "1"}},
	{wire.Solicit{Name: "h1"}, map[string]string{"type": "2", "name": "h1"}},
	{wire.Probe{Header: wire.Header{Nonce: 7}}, map[string]string{"type": "3", "nonce": "0x0000000000000007"}},
	{wire.ProbeAck{}, map[string]string{"type": "4"}},
	{wire.Fail{Reason: wire.HostGone, Quote: bpftest.Packet{Src: first, Dst: there.Addr(1<<63 | 9), Proto: bpftest.TCP, SPort: 1, DPort: 80}.Bytes()},
		map[string]string{"type": "5", "reason": "4"}},
	{wire.Bound{Socket: 1<<63 | 5}, map[string]string{"type": "6", "bound": "0x8000000000000005"}},
	{wire.Renegotiate{Kind: wire.TypeRSYN, Locator: there, Old: here, Claims: []wire.Claim{claim, claim}, Auth: proof},
		map[string]string{"type": "7", "flows": "2", "old": "fd5d:0:1:101::/64", "epoch": "3,3", "chain": "0x8000000000000001,0x8000000000000001", "locator": "fd5d:0:1:201::/64,fd5d:0:1:101::/64"}},
	{wire.Renegotiate{Kind: wire.TypeRSYNACK, Locator: there, Old: here, Claims: []wire.Claim{claim}}, map[string]string{"type": "8", "unsigned": "1"}},
	{wire.Renegotiate{Kind: wire.TypeRACK, Locator: there, Old: here, Claims: []wire.Claim{claim}}, map[string]string{"type": "9", "socket": "0x8000000000000002"}},
	{wire.Resume{Locator: here, Claim: claim, Service: service, Proto: sid.TCP, Transport: wire.Transport{ClientPort: 9, ServerPort: 80, SACK: true, MSS: 1400, SndUna: 11, Received: 6}},
		map[string]string{"type": "10", "service": "00000001-0000000000020000", "mss": "1400", "snd_una": "11", "received": "6", "sack": "1"}},
	{wire.FlowFail{Locator: here, Reason: wire.Elsewhere, Flows: []wire.Failed{{Stable: first, Epoch: 3, Server: true, Socket: 1<<63 | 2}}, Auth: succeeded},
		map[string]string{"type": "11", "succession.origin": string(bytes.Repeat([]byte("00"), 32)), "reason": "7", "stable": first.String(), "server": "1", "signature": string(bytes.Repeat([]byte("00"), 64))}},
}

func message(b []byte) []byte {
	return bpftest.Packet{Src: first, Dst: there.Addr(1<<63 | 9), Proto: bpftest.UDP, SPort: sid.Port, DPort: sid.Port, Payload: b}.Bytes()
}

// dissect has tshark read packets, and returns for each the values of the fields.
func dissect(t *testing.T, fields []string, packets ...[]byte) [][]string {
	t.Helper()
	dir := t.TempDir()
	var recording bytes.Buffer
	w, err := pcap.NewWriter(&recording, pcap.IP)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range packets {
		if err := w.Write(time.Unix(int64(i), 0), p, len(p)); err != nil {
			t.Fatal(err)
		}
	}
	file, plugin := filepath.Join(dir, "x.pcap"), filepath.Join(dir, "scaffold.lua")
	for name, text := range map[string][]byte{file: recording.Bytes(), plugin: Dissector} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"-X", "lua_script:" + plugin, "-r", file, "-T", "json"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	cmd := exec.Command("tshark", args...)
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || bytes.Contains(stderr.Bytes(), []byte("Lua")) {
		t.Fatalf("tshark: %v\n%s", err, stderr.String())
	}
	var list []struct {
		Source struct{ Layers map[string][]string } `json:"_source"`
	}
	if err := json.Unmarshal(out, &list); err != nil || len(list) != len(packets) {
		t.Fatalf("tshark printed %d of %d packets: %v\n%s", len(list), len(packets), err, out)
	}
	rows := make([][]string, len(list))
	for i, p := range list {
		for _, f := range fields {
			rows[i] = append(rows[i], string(bytes.Join(each(p.Source.Layers[f]), []byte(","))))
		}
	}
	return rows
}

func each(list []string) (all [][]byte) {
	for _, s := range list {
		all = append(all, []byte(s))
	}
	return all
}

func TestTsharkReadsEveryMessage(t *testing.T) {
	var packets [][]byte
	fields := []string{"scaffold.malformed"}
	for _, x := range told {
		packets = append(packets, message(x.message.Append(nil)))
		for f := range x.fields {
			if !slices.Contains(fields, "scaffold."+f) {
				fields = append(fields, "scaffold."+f)
			}
		}
	}
	for i, row := range dissect(t, fields, packets...) {
		if row[0] != "" {
			t.Errorf("%v: malformed, says the dissector", told[i].message.Type())
		}
		for f, want := range told[i].fields {
			if got := row[slices.Index(fields, "scaffold."+f)]; got != want {
				t.Errorf("%v: scaffold.%s = %q, want %q", told[i].message.Type(), f, got, want)
			}
		}
	}
}

// Whatever is cut off or altered is called malformed, and Lua has nothing to complain about.
func TestTsharkSurvivesWhatIsNoMessage(t *testing.T) {
	var packets [][]byte
	for _, x := range told {
		whole := x.message.Append(nil)
		for _, n := range []int{16, 17, len(whole) / 2, len(whole) - 1} {
			packets = append(packets, message(whole[:min(n, len(whole)-1)]))
		}
		packets = append(packets, message(append(whole, 0)))
	}
	for i, row := range dissect(t, []string{"scaffold.type", "scaffold.malformed"}, packets...) {
		if row[0] != "" && row[1] == "" {
			t.Errorf("packet %d of type %s was cut and is not called malformed", i, row[0])
		}
	}
}

func TestTsharkSaysWhatAddressesMean(t *testing.T) {
	space := sid.DefaultSpace()
	tcp := func(src, dst netip.Addr, label uint32) []byte {
		return bpftest.Packet{Src: src, Dst: dst, FlowLabel: label, Proto: bpftest.TCP, SPort: 1, DPort: 80, Flags: bpftest.SYN}.Bytes()
	}
	rows := dissect(t, []string{"scaffold.src.kind", "scaffold.src.locator", "scaffold.dst.kind", "scaffold.dst.service", "scaffold.dst.suffix", "scaffold.dst.socket", "scaffold.retry"},
		tcp(first, space.ServiceAddr(service), 2),
		tcp(first, there.Addr(0x20000), 0),
		tcp(first, there.Addr(1<<63|9), 0xfffff),
		tcp(first, there.Addr(1), 0),
		tcp(netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2"), 0))
	want := [][]string{
		{"bound", "fd5d:0:1:101::/64", "service", "00000001-0000000000020000", "", "", "2"},
		{"bound", "fd5d:0:1:101::/64", "first packet at its host", "", "0x0000000000020000", "", "0"},
		{"bound", "fd5d:0:1:101::/64", "bound", "", "", "0x8000000000000009", ""},
		{"bound", "fd5d:0:1:101::/64", "the host itself", "", "", "", "0"},
		{"", "", "", "", "", "", ""},
	}
	for i := range want {
		if !slices.Equal(rows[i], want[i]) {
			t.Errorf("packet %d: %q, want %q", i, rows[i], want[i])
		}
	}
}

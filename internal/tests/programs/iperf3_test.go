package programs

import (
	"encoding/json"
	"fmt"
	"testing"
)

// report is what we read of `iperf3 -J`.
type report struct {
	Error string
	Start struct {
		Connected []struct {
			RemoteHost string `json:"remote_host"`
		}
	}
	End struct {
		Streams     []json.RawMessage
		Sum         counted
		SumSent     counted `json:"sum_sent"`
		SumReceived counted `json:"sum_received"`
	}
}

type counted struct {
	Bytes   int64
	Packets int64
	Lost    int64   `json:"lost_packets"`
	Percent float64 `json:"lost_percent"`
}

// A run of iperf3 is one control connection and one flow for each stream, all to the same name. Each is
// a flow of its own, so they must not be spread: the service has one instance.
func iperf(t *testing.T) *service {
	t.Helper()
	s := newService(t, "iperf")
	s.own("s1", place(t), "iperf3", "-s", "--forceflush", "-B", s.addr.String())
	s.serving("tcp", 5201)
	return s
}

// measure is the server's nth test. Between two the server closes its socket and opens it anew: a client that came
// before that was reset, by the server's own kernel.
func measure(t *testing.T, s *service, nth int, argv ...string) (r report) {
	t.Helper()
	s.servers[0].proc.WaitFor(t, fmt.Sprintf("(test #%d)", nth))
	out := client(t, append([]string{"iperf3", "-J", "-t", "1", "-c", s.host}, argv...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("iperf3 %q: %v\n%s", argv, err, tail(out))
	}
	if r.Error != "" {
		t.Fatalf("iperf3 %q: %s", argv, r.Error)
	}
	for _, c := range r.Start.Connected {
		if c.RemoteHost != s.addr.String() {
			t.Errorf("iperf3 %q talked to %s, the service is %s", argv, c.RemoteHost, s.addr)
		}
	}
	return r
}

func TestIperf3TCP(t *testing.T) {
	s := iperf(t)
	for i, mode := range [][]string{{"-P", "4"}, {"-R"}} {
		r := measure(t, s, i+1, mode...)
		t.Logf("iperf3 %q: %d MB sent, %d MB received", mode, r.End.SumSent.Bytes>>20, r.End.SumReceived.Bytes>>20)
		if r.End.SumReceived.Bytes < 1<<20 {
			t.Errorf("iperf3 %q: %d bytes received of %d", mode, r.End.SumReceived.Bytes, r.End.SumSent.Bytes)
		}
	}
}

func TestIperf3UDP(t *testing.T) {
	s := iperf(t)
	for i, mode := range [][]string{{"-P", "2"}, {"-R"}} {
		// Open vSwitch's datapath in user space keeps some 90 frames of an interface while it has no processor: what comes in 70 ms.
		r := measure(t, s, i+1, append(mode, "-u", "-b", "12M", "-l", "1200")...)
		sum := r.End.Sum
		t.Logf("iperf3 -u %q: %d datagrams, %d lost", mode, sum.Packets, sum.Lost)
		if sum.Packets < 1000 || sum.Percent > 5 {
			t.Errorf("iperf3 -u %q: %d datagrams, %.1f %% lost, want 1000 or more and 5 %% or less", mode, sum.Packets, sum.Percent)
		}
	}
}

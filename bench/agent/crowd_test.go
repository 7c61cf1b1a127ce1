package agent

import (
	"encoding/json"
	"io"
	"testing"
)

func TestACrowdAsksWhenItIsTold(t *testing.T) {
	addr := start(t, "s1")
	for _, network := range []string{"tcp6", "udp6"} {
		orders, in := io.Pipe()
		out, reports := io.Pipe()
		done := make(chan error, 1)
		c := &Crowd{Network: network, To: addr, Flows: 50}
		go func() { done <- c.Run(t.Context(), orders, reports) }()
		dec := json.NewDecoder(out)
		next := func(order string) (r CrowdReport) {
			if order != "" {
				io.WriteString(in, order+"\n")
			}
			if err := dec.Decode(&r); err != nil {
				t.Fatal(network, err)
			}
			return r
		}
		if r := next(""); r.ByID["s1"] < 50 {
			t.Errorf("%s: %+v", network, r)
		}
		for r := next("ask"); r.Answers < 50; r = next("report") {
		}
		if r := next("fresh"); r.Answers != 0 || r.Moved != 0 || r.Others != 0 {
			t.Errorf("%s: %+v", network, r)
		}
		in.Close()
		if err := <-done; err != nil {
			t.Error(network, err)
		}
	}
}

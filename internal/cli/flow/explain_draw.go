package flow

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/output"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

func drawTold(w io.Writer, all told) error {
	for i, one := range all.flows {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := drawHistory(w, one); err != nil {
			return err
		}
	}
	if all.service == nil {
		return nil
	}
	if len(all.flows) > 0 {
		fmt.Fprintln(w)
	}
	return drawExplanation(w, all.service, len(all.flows) == 0)
}

// drawHistory is one end's account: who it is, what happened, when, and how long nothing came through.
func drawHistory(w io.Writer, s *apiv1.FlowHistory) error {
	fmt.Fprintln(w, headline(s))
	if err := output.Draw(w, func(t *output.Table) { drawFlow(t, s.Flow) }); err != nil || len(s.Events) == 0 {
		return err
	}
	fmt.Fprintln(w)
	return output.Draw(w, func(t *output.Table) { drawEvents(t, s.Events) })
}

// headline sums up.
func headline(s *apiv1.FlowHistory) string {
	moves, failovers, longest := uint32(0), uint32(0), int64(0)
	for _, c := range s.Events {
		switch c.Kind {
		case "move", "peer-move":
			moves++
		case "failover":
			failovers++
		}
		longest = max(longest, c.StallNs)
	}
	text := map[bool]string{true: "ended", false: "alive"}[s.Ended]
	text += fmt.Sprintf("; %s, %s", command.Count(moves, "move"), command.Count(failovers, "failover"))
	if longest > 0 {
		text += "; longest stall " + precise(longest)
	}
	host := "host " + s.Flow.Host
	if s.Flow.Role != "" {
		host = "its " + s.Flow.Role + "'s " + host
	}
	return fmt.Sprintf("A flow of %s, as %s saw it: %s.", cmp.Or(s.Flow.Service, "an unknown service"), host, text)
}

// drawEvents prints the clock, and how long after the beginning it was: people compare both.
func drawEvents(t *output.Table, all []*apiv1.FlowEvent) {
	t.Row("TIME", "AFTER", "WHAT", "STALL", "HOW")
	for _, c := range all {
		stall := ""
		if c.StallNs > 0 {
			stall = precise(c.StallNs)
		}
		at := time.Unix(0, c.UnixNs).Format("15:04:05.000")
		t.Row(at, precise(max(0, c.UnixNs-all[0].UnixNs)), c.Kind, stall, c.Text)
	}
}

// precise prints nanoseconds with three digits or so: stalls are told apart by milliseconds.
func precise(ns int64) string {
	d := time.Duration(ns)
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(100 * time.Microsecond).String()
}

// drawExplanation leaves the history out where a flow is explained: the instances are what matters there.
func drawExplanation(w io.Writer, s *apiv1.ServiceExplanation, history bool) error {
	if s.Service != nil {
		fmt.Fprintf(w, "Service %s:\n", s.Service.Name)
	}
	for _, reason := range s.Reasons {
		fmt.Fprintf(w, "  %s\n", reason)
	}
	if !history || len(s.Events) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\nWhat happened:")
	return output.Draw(w, func(t *output.Table) {
		for _, e := range s.Events {
			t.Row("  "+time.UnixMilli(e.UnixMs).Format("15:04:05.000"), e.Kind, e.Subject, e.Text)
		}
	})
}

// writeTold writes {"flows": [FlowHistory...], "service": ServiceExplanation}.
func writeTold(w io.Writer, all told) error {
	out := struct {
		Flows   []json.RawMessage `json:"flows"`
		Service json.RawMessage   `json:"service"`
	}{Flows: []json.RawMessage{}, Service: json.RawMessage("null")}
	for _, one := range all.flows {
		out.Flows = append(out.Flows, rawJSON(one))
	}
	if all.service != nil {
		out.Service = rawJSON(all.service)
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// rawJSON cannot fail for a message that came off the wire: its strings are valid.
func rawJSON(msg proto.Message) json.RawMessage {
	raw, _ := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(msg)
	var tidy bytes.Buffer
	json.Compact(&tidy, raw) //nolint:errcheck // it was marshalled a line above
	return tidy.Bytes()
}

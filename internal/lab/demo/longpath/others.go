package longpath

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/lab/agents"
)

// othersPass has the server send UDP, which no entry takes, by itself and beside a boosted download.
func othersPass(ctx context.Context, s *show) (string, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	alone, err := s.datagrams(ctx)
	if err != nil {
		return "", false, err
	}
	f, err := s.curl(ctx)
	if err != nil {
		return "", false, err
	}
	beside, err := s.datagrams(ctx)
	if ended := f.cmd.Wait(); err == nil && ended != nil {
		err = fmt.Errorf("curl: %w: %s", ended, f.said.String())
	}
	if err != nil {
		return "", false, err
	}
	seen := fmt.Sprintf("of 20 Mbit/s of UDP %.2f %% are lost alone, %.2f %% beside %.0f Mbit/s of curl", alone, beside, f.rate())
	return seen, beside <= alone+most, nil
}

// most is how much more of other traffic may be lost than is alone, in percent.
const most = 2

// datagrams are sent for two seconds; it returns how many percent were lost.
func (s *show) datagrams(ctx context.Context) (float64, error) {
	out, err := s.lab.Output(ctx, "c1", "iperf3", "-J", "-c", s.server.String(), "-p", strconv.Itoa(plainIperf), "-R", "-u", "-b", "20M", "-l", "1200", "-t", "2")
	var said struct {
		End struct {
			Sum struct {
				Lost float64 `json:"lost_percent"`
			}
		}
	}
	if err == nil {
		err = json.Unmarshal(out, &said)
	}
	if err != nil {
		return 0, fmt.Errorf("iperf3: %w: %s", err, out)
	}
	return said.End.Sum.Lost, nil
}

// explains asks the controller what binds a connection while it runs.
func explains(ctx context.Context, s *show) (string, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	f, err := s.curl(ctx)
	if err != nil {
		return "", false, err
	}
	asking, done := context.WithCancel(ctx)
	go func() {
		f.cmd.Wait() //nolint:errcheck // whatever it says: there is nothing more to ask about
		done()
	}()
	d := s.agents.(*agents.Driven) // a lab without a controller has no such step
	bound := ""
	for asking.Err() == nil { // what was said last is what most of the transfer was bound by
		all, err := d.Boost.ListBoostSessions(asking, connect.NewRequest(&apiv1.ListBoostSessionsRequest{Client: s.client.String()}))
		if err == nil && len(all.Msg.Sessions) > 0 && all.Msg.Sessions[0].ReceivedBound != "" {
			bound = all.Msg.Sessions[0].ReceivedBound
		}
		select {
		case <-asking.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	if ctx.Err() != nil {
		return "", false, ctx.Err()
	}
	if bound == "" {
		return "nothing is named", false, nil
	}
	return fmt.Sprintf("from the server to the client: the %s", bound), true, nil
}

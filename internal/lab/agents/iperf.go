package agents

import (
	"context"
	"encoding/json"
	"fmt"

	"scaffold.dev/scaffold/internal/lab"
)

// Iperf runs iperf3 in a node of a lab, and returns at which rate the receiver got its bytes, in bits a second.
func Iperf(ctx context.Context, l *lab.Lab, node string, arguments ...string) (float64, error) {
	out, err := l.Output(ctx, node, append([]string{"iperf3", "-J"}, arguments...)...)
	if err != nil {
		return 0, fmt.Errorf("iperf3: %w: %s", err, out)
	}
	var said struct {
		End struct {
			Received struct {
				Rate float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal(out, &said); err != nil {
		return 0, fmt.Errorf("iperf3's report: %w", err)
	}
	return said.End.Received.Rate, nil
}

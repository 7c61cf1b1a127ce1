package members

import (
	"bytes"
	"strings"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/cli/output"
)

func TestWhatADrainDidIsTrue(t *testing.T) {
	for want, c := range map[string]struct {
		req  *apiv1.DrainHostRequest
		done *apiv1.DrainHostResponse
	}{
		"s1 serves nothing: nothing was changed":         {&apiv1.DrainHostRequest{Host: "s1"}, &apiv1.DrainHostResponse{}},
		"s1 is not drained: nothing was changed":         {&apiv1.DrainHostRequest{Host: "s1", Undrain: true}, &apiv1.DrainHostResponse{}},
		"2 flows of its own programs were left alone":    {&apiv1.DrainHostRequest{Host: "s1"}, &apiv1.DrainHostResponse{Flows: 2, Services: []*apiv1.Drained{{Service: "web"}}}},
		"1 flow of its own programs was left alone":      {&apiv1.DrainHostRequest{Host: "s1"}, &apiv1.DrainHostResponse{Flows: 1, Services: []*apiv1.Drained{{Service: "web"}}}},
		"1 flow of its own programs would be left alone": {&apiv1.DrainHostRequest{Host: "s1", DryRun: true}, &apiv1.DrainHostResponse{Flows: 1, Services: []*apiv1.Drained{{Service: "web"}}}},
	} {
		var out bytes.Buffer
		if err := output.Draw(&out, func(t *output.Table) { drawDrained(t, c.req, c.done) }); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%q (%v), want %q", out.String(), err, want)
		}
	}
}

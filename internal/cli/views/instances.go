package views

import (
	"fmt"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/cli/output"
)

// Instances lists instances of services.
func Instances(t *output.Table, instances []*apiv1.Instance) {
	t.Row("HOST", "LOCATOR", "PORT", "WEIGHT", "EFFECTIVE", "STATE", "FLOWS", "QUEUE", "SINCE", "WHY")
	for _, i := range instances {
		t.Row(i.Host, i.Locator, fmt.Sprintf("%s/%d", i.Proto, i.Port), i.Weight, i.Effective, i.State, i.Flows, i.AcceptQueue, output.Age(i.SinceUnixMs), i.Reason)
	}
}

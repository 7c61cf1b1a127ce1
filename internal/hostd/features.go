package hostd

import (
	"fmt"
	"log/slog"
	"strings"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/features"
)

// probeFeatures says what the kernel can, and what a missing feature costs. Without a needed one there
// is no host.
func probeFeatures(log *slog.Logger) (all []*apiv1.Feature, err error) {
	var on, needed []string
	for _, f := range features.Probe() {
		all = append(all, &apiv1.Feature{Name: f.Name, On: f.Err == nil, Cost: f.Cost})
		switch {
		case f.Err == nil:
			on = append(on, f.Name)
		case f.Needed:
			needed = append(needed, fmt.Sprintf("%s (Linux %s)", f.Name, f.Since))
		default:
			log.Warn("the kernel lacks a feature", "feature", f.Name, "since", f.Since, "cost", f.Cost, "error", f.Err)
		}
	}
	if len(needed) > 0 {
		return all, fmt.Errorf("this kernel, or this process's rights, lack what a host needs: %s; scaffold doctor tells more", strings.Join(needed, ", "))
	}
	log.Info("kernel features", "on", strings.Join(on, ", "))
	return all, nil
}

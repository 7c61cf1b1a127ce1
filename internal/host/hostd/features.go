package hostd

import (
	"log/slog"
	"strings"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/features"
)

// probeFeatures says what the kernel can, and what a missing feature costs. Without a needed one there
// is no host.
func probeFeatures(log *slog.Logger) (all []*apiv1.Feature, err error) {
	found := features.Probe()
	if err := features.Missing("a host", found, func(f features.Feature) bool { return f.Needed }); err != nil {
		return nil, err
	}
	var on []string
	for _, f := range found {
		all = append(all, &apiv1.Feature{Name: f.Name, On: f.Err == nil, Cost: f.Cost})
		if f.Err != nil {
			log.Warn("the kernel lacks a feature", "feature", f.Name, "since", f.Since, "cost", f.Cost, "error", f.Err)
			continue
		}
		on = append(on, f.Name)
	}
	log.Info("kernel features", "on", strings.Join(on, ", "))
	return all, nil
}

package features

import (
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

func TestMain(m *testing.M) { nstest.Main(m) }

// The kernels that the tests run on have all that is needed; what is optional must at least be told.
func TestProbesAnswer(t *testing.T) {
	nstest.Root(t)
	for _, f := range Probe() {
		t.Logf("%-50s needed %-5v since %-8s %v", f.Name, f.Needed, f.Since, f.Err)
		if f.Name == "" || f.Cost == "" || f.Since == "" {
			t.Errorf("%+v: a feature without name, cost or origin", f)
		}
		if f.Needed && f.Err != nil {
			t.Errorf("%s: %v; the other tests of this kernel cannot pass either", f.Name, f.Err)
		}
	}
}

func TestProbesLeaveNoProgramBehind(t *testing.T) {
	safety.Test(t, safety.Trace)
	nstest.Root(t)
	Probe()
	Probe() // a leaked link on the root cgroup would make the second differ
	for _, f := range Probe() {
		if f.Needed && f.Err != nil {
			t.Errorf("third time: %s: %v", f.Name, f.Err)
		}
	}
}

func TestAForbiddenKernelFunctionIsTold(t *testing.T) {
	nstest.Root(t)
	for _, name := range []string{"scx_bpf_kick_cpu", "no_such_function", "cubictcp_init"} {
		if callable(name) == nil {
			t.Errorf("%s: said to be callable from tc programs", name)
		}
	}
}

package ends

import "testing"

func TestAPortThatIsNotThereIsNamed(t *testing.T) {
	_, err := portsOf([]string{"lo", "nowhere0"})
	if want := "agent's port \"nowhere0\": no such network interface: name one that `ip -br link` lists"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

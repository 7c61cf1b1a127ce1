package routerd

import "testing"

// A router that joined without a key names its network open only where others than this machine reach the controller.
func TestAnOpenControllerElsewhereIsToldFromOneOfThisMachine(t *testing.T) {
	for endpoint, want := range map[string]bool{
		"http://192.0.2.1:23728": true, "http://[2001:db8::1]:23728": true, "http://c1:23728": true,
		"http://127.0.0.1:23728": false, "http://[::1]:23728": false, "http://localhost:23728": false,
		"unix:/run/scaffold/controld.sock": false, "": false,
	} {
		if got := elsewhere(endpoint); got != want {
			t.Errorf("%q: %v, want %v", endpoint, got, want)
		}
	}
}

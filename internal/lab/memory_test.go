package lab

import "testing"

func TestThisMachineHasMemory(t *testing.T) {
	if available, err := availableMemory(); err != nil || available < 1<<20 {
		t.Errorf("this machine has %d bytes, %v", available, err)
	}
}

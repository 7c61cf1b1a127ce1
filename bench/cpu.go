package bench

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// busyTicks is the time that this machine's processors were busy since boot, in ticks of 10 ms, idle,
// waiting and stolen time left out. It sees all namespaces: hosts, routers and softirqs of the lab.
func busyTicks() (uint64, error) {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	line, err := bufio.NewReader(f).ReadString('\n')
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(line)
	if len(fields) < 8 || fields[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat begins with %q", line)
	}
	var sum uint64
	for _, i := range []int{1, 2, 3, 6, 7} { // user nice system irq softirq
		n, err := strconv.ParseUint(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/stat: %w", err)
		}
		sum += n
	}
	return sum, nil
}

package programs

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const redisConf = `
bind %[2]s
port 6379
protected-mode no
dir %[1]s
logfile %[1]s/redis.log
unixsocket %[1]s/redis.sock
save ""
appendonly no
daemonize no
`

func (s *service) redis(host, bind string, start func(host, dir string, argv ...string) server) server {
	dir := place(s.t)
	return start(host, dir, "redis-server", put(s.t, dir, "redis.conf", fmt.Sprintf(redisConf, dir, bind)))
}

func TestRedis(t *testing.T) {
	s := newService(t, "redis")
	s.redis("s1", s.addr.String(), s.own)
	s.serving("tcp", 6379)
	value := letters(3 << 20)
	file := put(t, place(t), "value", value)
	client(t, "sh", "-c", `redis-cli -h "$1" -x set key <"$2"`, "sh", s.host, file)
	got := filepath.Join(place(t), "got")
	client(t, "sh", "-c", `redis-cli -h "$1" --raw get key >"$2"`, "sh", s.host, got)
	sameFile(t, got, []byte(value+"\n"))
}

func TestRedisBenchmark(t *testing.T) {
	s := newService(t, "redis")
	s.redis("s1", s.addr.String(), s.own)
	s.redis("s2", "::", s.wild)
	s.serving("tcp", 6379)
	out := client(t, "redis-benchmark", "-h", s.host, "-n", "10000", "-c", "20", "-q", "-t", "set,get")
	if !regexp.MustCompile(`SET: [0-9.]+ requests per second`).MatchString(out) || strings.Contains(out, "rror") {
		t.Errorf("redis-benchmark:\n%s", tail(out))
	}
	calls := map[string]int{}
	sum := 0
	for _, srv := range s.servers {
		calls[srv.host] = sets(t, srv)
		sum += calls[srv.host]
	}
	both(t, "SETs that the servers counted", calls)
	if sum != 10000 {
		t.Errorf("the servers counted %v = %d SETs, 10000 were made", calls, sum)
	}
}

// sets asks one server by its Unix socket how many SETs it served.
func sets(t *testing.T, srv server) int {
	t.Helper()
	out := local(t, "redis-cli", "-s", filepath.Join(srv.dir, "redis.sock"), "info", "commandstats")
	m := regexp.MustCompile(`cmdstat_set:calls=(\d+)`).FindStringSubmatch(out)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

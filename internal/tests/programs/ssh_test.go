package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sshdConf = `
ListenAddress %[2]s
HostKey %[1]s/host_key
AuthorizedKeysFile %[1]s/authorized_keys
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
PermitUserRC no
PasswordAuthentication no
KbdInteractiveAuthentication no
UseDNS no
PrintMotd no
PrintLastLog no
Subsystem sftp internal-sftp
SetEnv SERVED_BY=%[3]s
`

const sshConf = `
IdentityFile %[1]s/user_key
IdentitiesOnly yes
UserKnownHostsFile %[1]s/known_hosts
GlobalKnownHostsFile none
StrictHostKeyChecking yes
BatchMode yes
LogLevel ERROR
`

// login is an sshd behind a name: one host key for all instances, as the name is what clients know.
func login(t *testing.T) (s *service, ssh string) {
	t.Helper()
	s = newService(t, "login")
	keys := sshKeys(t, s.host)
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // sshd asks for it
		t.Fatal(err)
	}
	for i, host := range []string{"s1", "s2"} {
		addr, start := s.at(22), s.own
		if i == 1 {
			addr, start = "[::]:22", s.wild
		}
		dir := place(t)
		config := put(t, dir, "sshd_config", fmt.Sprintf(sshdConf, keys, addr, host))
		start(host, dir, "/usr/sbin/sshd", "-D", "-f", config, "-E", filepath.Join(dir, "sshd.log"))
	}
	s.serving("tcp", 22)
	return s, put(t, keys, "ssh_config", fmt.Sprintf(sshConf, keys))
}

// sshKeys makes the host's and the user's key in a directory of their own.
func sshKeys(t *testing.T, name string) string {
	t.Helper()
	dir := place(t)
	for _, key := range []string{"host_key", "user_key"} {
		local(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", key, "-f", filepath.Join(dir, key))
	}
	public, err := os.ReadFile(filepath.Join(dir, "host_key.pub"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "known_hosts", name+" "+string(public))
	if err := os.Rename(filepath.Join(dir, "user_key.pub"), filepath.Join(dir, "authorized_keys")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestSSH(t *testing.T) {
	s, config := login(t)
	n := map[string]int{}
	for tries := 0; tries < 40 && (n["s1"] == 0 || n["s2"] == 0); tries++ {
		switch host := strings.TrimSpace(client(t, "ssh", "-F", config, "root@"+s.host, "echo $SERVED_BY")); host {
		case "s1", "s2":
			n[host]++
		default:
			t.Fatalf("ssh printed %q, want the host's name", host)
		}
	}
	both(t, "logins", n)
}

// scp keeps both ways of a connection busy for a while: 100 MB there, and back.
func TestSCP(t *testing.T) {
	s, config := login(t)
	blob := random(100 << 20)
	dir := place(t)
	put(t, dir, "blob", string(blob))
	there, back := filepath.Join(dir, "there"), filepath.Join(dir, "back")
	client(t, "scp", "-q", "-F", config, filepath.Join(dir, "blob"), "root@"+s.host+":"+there)
	sameFile(t, there, blob)
	client(t, "scp", "-q", "-F", config, "root@"+s.host+":"+there, back)
	sameFile(t, back, blob)
}

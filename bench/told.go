package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/bench/agent"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// How the benchmark of told ports talks.
const (
	ftpSession = 50 // transfers over one control connection
	toldBeside = 32 // short connections at a time, beside them
	toldClosed = 9  // the port that nobody opens: discard
	toldWeb    = "told-web"
)

// vsftpdConf: each transfer opens a port, tells it over the control connection, and closes it. A client has another
// address for each connection, hence promiscuous. Who opens the ports is by default nobody, who may not serve.
const vsftpdConf = `listen=NO
listen_ipv6=YES
listen_address6=%s
background=NO
anonymous_enable=YES
no_anon_password=YES
local_enable=NO
anon_root=%s
secure_chroot_dir=%s
nopriv_user=ftp
pasv_promiscuous=YES
xferlog_enable=NO
`

const nginxConf = `daemon off;
master_process off;
pid nginx.pid;
error_log stderr;
events { worker_connections 1024; }
http {
	access_log off;
	server { listen [%s]:80; location / { return 200 "ok"; } }
}
`

// Told measures what becomes of ports that a server opens and tells over another connection: passive transfers of vsftpd
// on s1 to curl on c1, beside short connections (ab) to another service on the same hosts. Then, with nothing beside it,
// how soon a port is refused that nobody has opened.
func Told(ctx context.Context, r *Rig, service string, transfers, closed int) (rep Report, err error) {
	s, err := r.Service(ctx, service)
	if err != nil {
		return rep, err
	}
	ftp := s.Address
	made, err := r.Client.CreateService(ctx, connect.NewRequest(&apiv1.CreateServiceRequest{Name: toldWeb}))
	if err != nil {
		return rep, fmt.Errorf("create service %s: %w", toldWeb, err)
	}
	dir, err := os.MkdirTemp("", "scaffold-told-") // vsftpd reads it as its own user, who may not look into a lab's
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	stop, err := startTold(r, dir, ftp, made.Msg.Address)
	defer stop()
	if err != nil {
		return rep, err
	}
	for _, s := range []struct {
		name      string
		instances int
	}{{service, 1}, {toldWeb, 2}} {
		if err := awaitServing(ctx, r, s.name, s.instances); err != nil {
			return rep, err
		}
	}
	besides, err := besideTold(ctx, r, made.Msg.Address)
	if err != nil {
		return rep, err
	}
	failed, first, err := transferTold(ctx, r, ftp, transfers)
	besides()
	if err != nil {
		return rep, err
	}
	took, err := refusalsTold(ctx, r, ftp, closed)
	if err != nil {
		return rep, err
	}
	rep.Rows = []Row{
		NewRow(fmt.Sprintf("of %d passive transfers, refused or broken", transfers), "transfers", "<= 0", "", []float64{float64(failed)}),
		NewRow("a port that is closed: connect() to its refusal, p50", "ms", "<= 30", "", took),
		QuantileRow("a port that is closed: connect() to its refusal, max", "ms", "<= 30", "", took, 1),
	}
	rep.Notes = append(rep.Notes, fmt.Sprintf("curl fetches from vsftpd, %d files over each control connection, beside ab -c %d to two nginx; closed ports are asked for when all that is over", ftpSession, toldBeside))
	if first != "" {
		rep.Notes = append(rep.Notes, "the first that failed: "+first)
	}
	return rep, nil
}

// startTold starts vsftpd on s1 and nginx on s1 and s2; stop ends what was started.
func startTold(r *Rig, dir, ftp, web string) (stop func(), err error) {
	var started []*exec.Cmd
	stop = func() {
		for _, cmd := range started {
			cmd.Process.Signal(syscall.SIGTERM) // it may have ended
			cmd.Wait()                          //nolint:errcheck // the same
		}
	}
	root, empty := filepath.Join(dir, "files"), filepath.Join(dir, "empty")
	err = errors.Join(os.Chmod(dir, 0o755), os.Mkdir(root, 0o755), os.Mkdir(empty, 0o755),
		os.WriteFile(filepath.Join(root, "file"), []byte("told\n"), 0o644))
	run := func(node, program, conf string, argv ...string) {
		file := filepath.Join(dir, node+"-"+program)
		cmd := exec.Command(program, append(argv, file)...)
		cmd.Stderr = os.Stderr
		if err = errors.Join(err, os.WriteFile(file, []byte(conf), 0o600)); err != nil {
			return
		}
		if err = r.Start(node, cmd); err != nil {
			err = fmt.Errorf("start %s on %s: %w", program, node, err)
			return
		}
		started = append(started, cmd)
	}
	run("s1", "vsftpd", fmt.Sprintf(vsftpdConf, ftp, root, empty))
	for _, node := range []string{"s1", "s2"} {
		own := filepath.Join(dir, node)
		err = errors.Join(err, os.Mkdir(own, 0o755))
		run(node, "nginx", fmt.Sprintf(nginxConf, web), "-p", own, "-c")
	}
	return stop, err
}

// besideTold makes short connections until it is stopped.
func besideTold(ctx context.Context, r *Rig, web string) (stop func(), err error) {
	url := "http://" + netip.AddrPortFrom(netip.MustParseAddr(web), 80).String() + "/"
	if out, err := r.Output(ctx, "c1", "ab", "-q", "-n", "100", "-c", fmt.Sprint(toldBeside), url); err != nil {
		return nil, fmt.Errorf("ab %s: %w: %s", url, err, out)
	}
	cmd := exec.Command("ab", "-q", "-r", "-n", "1000000000", "-c", fmt.Sprint(toldBeside), url)
	if err := r.Start("c1", cmd); err != nil {
		return nil, err
	}
	return func() {
		cmd.Process.Kill() // it may have ended
		cmd.Wait()         //nolint:errcheck // killed
	}, nil
}

// transferTold counts transfers that curl gives up, and says why the first was.
func transferTold(ctx context.Context, r *Rig, ftp string, transfers int) (failed int, first string, err error) {
	url := "ftp://" + netip.AddrPortFrom(netip.MustParseAddr(ftp), 21).String() + "/file"
	for done := 0; done < transfers; {
		n := min(ftpSession, transfers-done)
		argv := []string{"-s", "-g", "-w", "%{stderr}%{exitcode} %{errormsg}\n"}
		for range n {
			argv = append(argv, url)
		}
		var said bytes.Buffer
		cmd := exec.CommandContext(ctx, "curl", argv...)
		cmd.Stderr = &said
		if err := r.Start("c1", cmd); err != nil {
			return 0, "", err
		}
		cmd.Wait() //nolint:errcheck // it says of each
		if ctx.Err() != nil {
			return 0, "", ctx.Err()
		}
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		if len(lines) != n {
			return 0, "", fmt.Errorf("curl said of %d of %d transfers how they went: %s", len(lines), n, said.String())
		}
		for _, line := range lines {
			if code, why, _ := strings.Cut(line, " "); code != "0" {
				failed++
				if first == "" {
					first = "curl " + code + ": " + why
				}
			}
		}
		done += n
	}
	return failed, first, nil
}

// refusalsTold connects to a port that nobody has opened. The client has had flows with the hosts of the
// service a moment ago, and asks them.
func refusalsTold(ctx context.Context, r *Rig, ftp string, n int) (took []float64, err error) {
	w, err := startWatch(r, "c1", "tcp6", netip.AddrPortFrom(netip.MustParseAddr(ftp), toldClosed).String(), 1)
	if err != nil {
		return nil, err
	}
	w.until(time.Minute, func(q agent.Request) bool {
		if q.Err != "" {
			took = append(took, float64(q.End-q.Start)/1e6)
		}
		return len(took) >= n || ctx.Err() != nil
	})
	if err := w.stop(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if len(took) < n {
		return nil, fmt.Errorf("%d of %d connections to a closed port were refused within a minute", len(took), n)
	}
	return took, nil
}

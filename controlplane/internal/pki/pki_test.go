package pki

import (
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

var (
	now       = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	loopback  = net.IPv4(127, 0, 0, 1)
	serviceIP = net.IPv4(10, 0, 0, 1)
)

const year = 365 * 24 * time.Hour

func ensure(t *testing.T, folder string, address net.IP, at time.Time) Files {
	t.Helper()
	files, err := Ensure(folder, address, serviceIP, at)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestEnsureVerifies(t *testing.T) {
	files := ensure(t, t.TempDir(), loopback, now)
	ca := x509.NewCertPool()
	ca.AppendCertsFromPEM([]byte(read(t, files.CA)))
	server, err := load(files.Server)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"127.0.0.1", "::1", "localhost", "10.0.0.1", "kubernetes.default.svc"} {
		if _, err := server.Leaf.Verify(x509.VerifyOptions{Roots: ca, DNSName: name, CurrentTime: now}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, client := range []Pair{files.Admin, files.Controllers} {
		c, err := load(client)
		if err != nil {
			t.Fatal(err)
		}
		options := x509.VerifyOptions{Roots: ca, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		if _, err := c.Leaf.Verify(options); err != nil {
			t.Error(err)
		}
		if org := c.Leaf.Subject.Organization; len(org) != 1 || org[0] != "system:masters" {
			t.Errorf("client is of %v, want system:masters", org)
		}
	}
}

func TestEnsureReplacesOnlyInvalidFiles(t *testing.T) {
	type change struct{ ca, server, account bool }
	tests := map[string]struct {
		again  time.Time
		addr   net.IP
		damage func(t *testing.T, f Files)
		want   change
	}{
		"nothing":             {now.Add(time.Hour), loopback, nil, change{}},
		"half a life left":    {now.Add(year - 24*time.Hour), loopback, nil, change{}},
		"less than half left": {now.Add(year + 24*time.Hour), loopback, nil, change{server: true}},
		"authority too old":   {now.Add(6 * year), loopback, nil, change{ca: true, server: true}},
		"clock went back":     {now.Add(-year), loopback, nil, change{ca: true, server: true}},
		"other address":       {now, net.IPv4(192, 168, 1, 2), nil, change{server: true}},
		"half a certificate": {now, loopback, func(t *testing.T, f Files) {
			if err := os.Truncate(f.Server.Certificate, 40); err != nil {
				t.Fatal(err)
			}
		}, change{server: true}},
		"key of another": {now, loopback, func(t *testing.T, f Files) {
			if err := os.WriteFile(f.Server.Key, []byte(read(t, f.Admin.Key)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, change{server: true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			files := ensure(t, folder, loopback, now)
			ca, server, account := read(t, files.CA), read(t, files.Server.Certificate), read(t, files.ServiceAccounts)
			if test.damage != nil {
				test.damage(t, files)
			}
			ensure(t, folder, test.addr, test.again)
			got := change{
				ca:      ca != read(t, files.CA),
				server:  server != read(t, files.Server.Certificate),
				account: account != read(t, files.ServiceAccounts),
			}
			if got != test.want {
				t.Errorf("made again %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestEnsureRefusesToReplaceDamagedAccountKey(t *testing.T) {
	folder := t.TempDir()
	files := ensure(t, folder, loopback, now)
	if err := os.WriteFile(files.ServiceAccounts, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Ensure(folder, loopback, serviceIP, now); err == nil {
		t.Error("no error: every token would have become invalid silently")
	}
}

func TestFilesArePrivate(t *testing.T) {
	folder := t.TempDir()
	files := ensure(t, folder, loopback, now)
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := WriteKubeconfig(kubeconfig, "https://127.0.0.1:1", files, files.Admin); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o, want 600", entry.Name(), info.Mode().Perm())
		}
	}
}

func TestKubeconfigIsComplete(t *testing.T) {
	folder := t.TempDir()
	files := ensure(t, folder, loopback, now)
	path := filepath.Join(folder, "kubeconfig")
	if err := WriteKubeconfig(path, "https://127.0.0.1:16443", files, files.Admin); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.0.0.1:16443" {
		t.Errorf("host is %s", config.Host)
	}
	if string(config.CAData) != read(t, files.CA) || string(config.KeyData) != read(t, files.Admin.Key) {
		t.Error("the kubeconfig does not hold the authority and the key of the administrator")
	}
}

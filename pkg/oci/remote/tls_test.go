package remote

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
)

// hardening: A5
func TestTLS(t *testing.T) {
	now := time.Now()
	tests := map[string]struct {
		server func(*tls.Config)
		host   func(*httptest.Server) HostOptions
		now    time.Time
		want   string
		advice string
	}{
		"SelfSigned": {
			host: func(*httptest.Server) HostOptions { return HostOptions{} }, want: "unknown authority", advice: "--ca-file",
		},
		"OtherCA": {host: func(*httptest.Server) HostOptions {
			return HostOptions{RootCAs: x509.NewCertPool(), CAAdvice: "Change the file."}
		}, want: "unknown authority", advice: "Change the file."},
		"Expired": {
			host: trusted, now: now.AddDate(100, 0, 0), want: "the time of this machine is", advice: "Renew the certificate",
		},
		"NotYet": {host: trusted, now: now.AddDate(
			-100, 0, 0,
		), want: "the time of this machine is", advice: "the clock of this machine"},
		"OldProtocol": {
			server: func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS10 },
			host:   trusted, want: "protocol version",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := ocitest.NewUnstartedRegistry(t)
			f.TLS = &tls.Config{} // The test also uses old TLS versions.
			f.Config.ErrorLog = ocitest.Quiet
			if tc.server != nil {
				tc.server(f.TLS)
			}
			f.StartTLS()
			ref := f.Publish(t, ocitest.Hello(t), "v1")
			r := testRemote(t, func(o *Options) {
				o.Hosts = map[string]HostOptions{f.Host(): tc.host(f.Server)}
				if !tc.now.IsZero() {
					o.Now = func() time.Time { return tc.now }
				}
			})
			err := read(t, r, ref)
			ocitest.WantCode(t, err, ErrTLSUntrusted)
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v does not say %q", err, tc.want)
			}
			if do := errcode.From(err).Do; !strings.Contains(do, tc.advice) {
				t.Errorf("the advice is %q", do)
			}
			if f.Count("/") != 0 {
				t.Error("the registry got a request")
			}
		})
	}
}

// hardening: A5
func TestTLSRefusesWrongName(t *testing.T) {
	f := ocitest.NewUnstartedRegistry(t)
	f.Config.ErrorLog = ocitest.Quiet
	f.StartTLS()
	const host = "registry.acme.test"
	_, port, _ := net.SplitHostPort(f.Host())
	r := testRemote(t, func(o *Options) {
		o.Hosts = map[string]HostOptions{host + ":" + port: trusted(f.Server)}
		o.Lookup = loopbackNames
	})
	err := read(t, r, oci.MustParseReference(host+":"+port+"/acme/pkg:v1"))
	ocitest.WantCode(t, err, ErrTLSUntrusted)
	if do := errcode.From(err).Do; !strings.Contains(do, "issue a certificate for "+host+".") {
		t.Errorf("the advice is %q", do)
	}
}

// hardening: A5
func TestTLSIsNeverDowngraded(t *testing.T) {
	f := ocitest.NewRegistry(t) // It speaks plain HTTP.
	ref := f.Publish(t, ocitest.Hello(t), "v1")
	r := testRemote(t, func(o *Options) { o.Hosts = map[string]HostOptions{f.Host(): {}} })
	err := read(t, r, ref)
	ocitest.WantCode(t, err, ErrTLSUntrusted)
	if do := errcode.From(err).Do; !strings.Contains(do, "--insecure "+f.Host()) {
		t.Errorf("the advice is %q", do)
	}
	if f.Count("/") != 0 {
		t.Error("the registry got a request without TLS")
	}
}

// hardening: A5
func TestTLSAcceptsConfiguredCA(t *testing.T) {
	f := ocitest.NewUnstartedRegistry(t)
	f.StartTLS()
	ref := f.Publish(t, ocitest.Hello(t), "v1")
	for name, h := range map[string]HostOptions{"CA": trusted(f.Server), "Insecure": {SkipVerify: true}} {
		t.Run(name, func(t *testing.T) {
			r := testRemote(t, func(o *Options) { o.Hosts = map[string]HostOptions{f.Host(): h} })
			if err := read(t, r, ref); err != nil {
				t.Error(err)
			}
		})
	}
}

func trusted(s *httptest.Server) HostOptions {
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return HostOptions{RootCAs: pool}
}

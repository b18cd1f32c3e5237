package cloudidentity_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/xpkg-dev/xpkg/internal/cloudidentity"
	"github.com/xpkg-dev/xpkg/internal/testing/clouds"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// newKeychain returns a keychain that reaches only a stand-in for the clouds.
func newKeychain(t *testing.T, handler http.Handler, now func() time.Time) *cloudidentity.Keychain {
	t.Helper()
	network := clouds.Serve(t, handler)
	return cloudidentity.New(cloudidentity.Options{RootCAs: network.Roots, Dial: network.Dial, Now: now})
}

// first returns the first credentials for a host.
func first(t *testing.T, k *cloudidentity.Keychain, host string) (authn.AuthConfig, error) {
	t.Helper()
	for auth, err := range k.Candidates(t.Context(), resource(host)) {
		return auth, err
	}
	return authn.AuthConfig{}, nil
}

// Each identity that a cloud gives to a process gets the token of each registry of the cloud.
func TestEachIdentityGetsAToken(t *testing.T) {
	for _, s := range settings {
		t.Run(s.name, func(t *testing.T) {
			s.apply(t)
			for _, host := range s.hosts {
				stand := &clouds.Clouds{Machine: s.machine}
				auth, err := first(t, newKeychain(t, stand, nil), host)
				if err != nil || auth.Username != s.user || auth.Password == "" || auth.Password != stand.Valid() {
					t.Errorf("%s: got %+v, %v, want the token %q", host, auth, err, stand.Valid())
				}
			}
		})
	}
}

// A host that belongs to no cloud makes no service of a cloud be asked, whatever identity the process has.
func TestOtherHostsGetNothing(t *testing.T) {
	for _, s := range settings {
		t.Run(s.name, func(t *testing.T) {
			s.apply(t)
			var asked atomic.Int64
			k := newKeychain(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }), nil)
			for _, host := range []string{
				"evil-azurecr.io", "ghcr.io", amazonHost + ".evil.org", azureHost + ":8443", "pkg.dev",
			} {
				for auth, err := range k.Candidates(t.Context(), resource(host)) {
					t.Errorf("%s: got %+v, %v", host, auth, err)
				}
			}
			if n := asked.Load(); n != 0 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// A token is used until shortly before it expires, and then renewed. Concurrent callers ask once.
func TestTokensAreKeptAndRenewed(t *testing.T) {
	for host, machine := range map[string]string{amazonHost: "amazon", azureHost: "azure", googleHost: "google"} {
		t.Run(machine, func(t *testing.T) {
			setting{}.apply(t)
			var late atomic.Int64
			start := time.Now().Truncate(time.Second)
			now := func() time.Time { return start.Add(time.Duration(late.Load())) }
			stand := &clouds.Clouds{Machine: machine, Now: now}
			k := newKeychain(t, stand, now)
			all := func() (passwords map[string]int) {
				passwords = map[string]int{}
				var mu sync.Mutex
				var group sync.WaitGroup
				for range 20 {
					group.Go(func() {
						auth, err := k.Resolve(resource(host))
						if err != nil {
							t.Error(err)
							return
						}
						c, _ := auth.Authorization()
						mu.Lock()
						defer mu.Unlock()
						passwords[c.Password]++
					})
				}
				group.Wait()
				return passwords
			}
			var before string
			for i, at := range []time.Duration{0, 56 * time.Minute, 58 * time.Minute, 59 * time.Minute} {
				late.Store(int64(at))
				got := all()
				if got[stand.Valid()] != 20 {
					t.Errorf("after %v: got %v, want %s", at, got, stand.Valid())
				}
				if isNew := stand.Valid() != before; isNew != (i == 0 || i == 2) {
					t.Errorf("after %v: the token is new: %t", at, isNew)
				}
				before = stand.Valid()
			}
			if valid := stand.Valid(); !strings.HasSuffix(valid, "token-2") {
				t.Errorf("20 callers at once: %s", valid)
			}
		})
	}
}

// A failure states why the identity cannot be used and what to do, without a secret, and is remembered for a minute.
func TestRefusedIdentities(t *testing.T) {
	denying := map[string]string{
		"EKS, role of a ServiceAccount": "sts.us-east-1.amazonaws.com", "EKS, pod identity": "169.254.170.23",
		"keys of Amazon": "api.ecr.us-east-1.amazonaws.com", "machine of Amazon": "169.254.169.254",
		"AKS, workload identity": "login.microsoftonline.com", "machine of Azure": azureHost,
		"file of Google": "oauth2.googleapis.com", "GKE and machine of Google": "169.254.169.254",
	}
	for _, s := range settings {
		service, ok := denying[s.name]
		if !ok {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			s.apply(t)
			var late atomic.Int64
			start := time.Now()
			stand := &clouds.Clouds{Machine: s.machine, Denies: map[string]int{service: http.StatusForbidden}}
			k := newKeychain(t, stand, func() time.Time { return start.Add(time.Duration(late.Load())) })
			for i, at := range []time.Duration{0, 59 * time.Second, 61 * time.Second} {
				late.Store(int64(at))
				_, err := first(t, k, s.hosts[0])
				failed := errcode.From(err)
				if !errors.Is(err, cloudidentity.ErrCloudIdentity) || !strings.Contains(err.Error(), "denies it") ||
					!strings.Contains(failed.Do, "log in with `") {
					t.Fatalf("got %v: %s", err, failed.Do)
				}
				for _, secret := range []string{
					clouds.SecretKey, clouds.ServiceAccount, clouds.Entra, `"` + clouds.Secret,
				} {
					if strings.Contains(err.Error(), secret) {
						t.Errorf("%v contains %q", err, secret)
					}
				}
				if n := stand.Asked(service); n != max(1, i) {
					t.Errorf("after %v: %s was asked %d times", at, service, n)
				}
			}
		})
	}
}

// The error for a process without an identity names the identities that it could have.
func TestProcessWithoutIdentity(t *testing.T) {
	setting{}.apply(t)
	k := cloudidentity.New(cloudidentity.Options{Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no route to host")
	}})
	for host, words := range map[string]string{
		amazonHost: "the environment contains no AWS_ACCESS_KEY_ID and no AWS_ROLE_ARN, " +
			"and cannot reach 169.254.169.254: no route to host",
		azureHost: "the environment contains no AZURE_FEDERATED_TOKEN_FILE, " +
			"cannot reach 169.254.169.254: it does not respond, and the Azure CLI is not installed",
		googleHost: "it does not respond",
	} {
		_, _ = first(t, k, amazonHost) // The metadata service is absent from now on.
		if _, err := first(t, k, host); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: got %v, want %s", host, err, words)
		}
	}
}

// A metadata service that does not respond costs a second, once, for all registries of all clouds. A caller waits no
// longer than its context.
func TestAbsentMetadataServiceIsRemembered(t *testing.T) {
	setting{}.apply(t)
	synctest.Test(t, func(t *testing.T) {
		k := cloudidentity.New(cloudidentity.Options{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		start := time.Now()
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		for _, err := range k.Candidates(short, resource(azureHost)) {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		}
		if d := time.Since(start); d != 100*time.Millisecond {
			t.Errorf("a caller waited %v", d)
		}
		for _, host := range []string{azureHost, amazonHost, publicHost, googleHost, "gcr.io", "other.azurecr.io"} {
			if _, err := first(t, k, host); err == nil {
				t.Errorf("%s: got credentials", host)
			}
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("all callers waited %v", d)
		}
	})
}

// A token service that does not respond ends the wait of a caller in bounded time.
func TestSlowTokenServiceIsBounded(t *testing.T) {
	setting{env: map[string]string{"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}}.apply(t)
	synctest.Test(t, func(t *testing.T) {
		k := cloudidentity.New(cloudidentity.Options{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute): // Transports connect without the deadline of the request.
			}
			return nil, errors.New("timeout")
		}})
		start := time.Now()
		_, err := first(t, k, amazonHost)
		if d := time.Since(start); !errors.Is(err, cloudidentity.ErrCloudIdentity) || d > 20*time.Second {
			t.Errorf("got %v after %v", err, d)
		}
		time.Sleep(time.Minute) // Until the connection is given up, too.
	})
}

// No service of a cloud can redirect a request with a token, a key or a secret to another host.
func TestTokenServicesCannotRedirect(t *testing.T) {
	for _, s := range settings {
		t.Run(s.name, func(t *testing.T) {
			for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect} {
				s.apply(t)
				var other atomic.Int64
				elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { other.Add(1) }))
				t.Cleanup(elsewhere.Close)
				k := newKeychain(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					http.Redirect(w, r, elsewhere.URL, status)
				}), nil)
				if auth, err := first(t, k, s.hosts[0]); err == nil {
					t.Errorf("got %+v", auth)
				}
				if n := other.Load(); n != 0 {
					t.Errorf("%d: another host got %d requests", status, n)
				}
			}
		})
	}
}

// A service that responds with something else gives no credentials.
func TestMalformedResponses(t *testing.T) {
	for _, s := range settings {
		t.Run(s.name, func(t *testing.T) {
			s.apply(t)
			for _, body := range []string{
				"", "{}", "[]", "null", "<html>", `{"authorizationData":[]}`, `{"authorizationData":{}}`,
			} {
				k := newKeychain(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					_, _ = w.Write([]byte(body))
				}), nil)
				if auth, err := first(t, k, s.hosts[0]); !errors.Is(err, cloudidentity.ErrCloudIdentity) {
					t.Errorf("%q: got %+v, %v", body, auth, err)
				}
			}
		})
	}
}

// The variables of the SDKs select other endpoints, such as those of a private network.
func TestEndpointsOfTheEnvironment(t *testing.T) {
	stand := &clouds.Clouds{Machine: "google"}
	// The stand-in selects a service by its host, which the path replaces here.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if strings.HasPrefix(r.URL.Path, "/computeMetadata/") {
			host, path = "169.254.169.254", strings.TrimPrefix(r.URL.Path, "/")
		}
		r.Host, r.URL.Path = host, "/"+path
		stand.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	at := func(host string) string { return server.URL + "/" + host }
	setting{files: token, env: map[string]string{
		"AWS_WEB_IDENTITY_TOKEN_FILE": federated, "AWS_ROLE_ARN": "arn",
		"AWS_ENDPOINT_URL_STS": at("sts.us-east-1.amazonaws.com"),
		"GCE_METADATA_HOST":    strings.TrimPrefix(server.URL, "http://"),
	}}.apply(t)
	network := clouds.Serve(t, stand)
	dial := func(ctx context.Context, n, address string) (net.Conn, error) {
		if address == server.Listener.Addr().String() || address == "api.ecr.us-east-1.amazonaws.com:443" {
			return network.Dial(ctx, n, address)
		}
		return nil, fmt.Errorf("connected to %s", address)
	}
	k := cloudidentity.New(cloudidentity.Options{RootCAs: network.Roots, Dial: dial})
	for _, host := range []string{amazonHost, googleHost} {
		if auth, err := first(t, k, host); err != nil || auth.Password != stand.Valid() {
			t.Errorf("%s: got %+v, %v", host, auth, err)
		}
	}
}

// The keys of a container are requested without TLS only from the services of a node.
func TestContainerAddressWithoutTLS(t *testing.T) {
	setting{env: map[string]string{
		"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://evil.example.com/keys",
		"AWS_CONTAINER_AUTHORIZATION_TOKEN":  "secret",
	}}.apply(t)
	var asked atomic.Int64
	k := newKeychain(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }), nil)
	_, err := first(t, k, amazonHost)
	if err == nil || !strings.Contains(err.Error(), "without TLS") || asked.Load() != 0 {
		t.Errorf("got %v after %d requests", err, asked.Load())
	}
}

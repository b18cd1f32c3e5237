package fetch_test

import (
	"errors"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cloudidentity"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/testing/clouds"
	"github.com/xpkg-dev/xpkg/internal/testing/sourcetest"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

const (
	amazonHost = "123456789012.dkr.ecr.us-east-1.amazonaws.com"
	amazonAPI  = "api.ecr.us-east-1.amazonaws.com"
)

// cloudSource returns a source of content with the identity of the machine, and the reference of a package at a host of
// a stand-in for the clouds.
func cloudSource(t *testing.T, host string, stand *clouds.Clouds) (*fetch.Source, oci.Reference) {
	t.Helper()
	clouds.ClearEnvironment(t)
	home := newRegistry(t)
	ref := push(t, home.address)
	stand.Content = httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: home.address})
	network := clouds.Serve(t, stand)
	source := sourcetest.New(t, func(o *fetch.Options) {
		o.Remote.RootCAs, o.Remote.Dial = network.Roots, network.Dial
		o.Remote.Keychain = cloudidentity.New(cloudidentity.Options{
			RootCAs: network.Roots, Dial: network.Dial, Now: stand.Now,
		})
	})
	ref.Registry = host
	return source, ref
}

// A source reads a private package with the identity of the machine alone, and with a new token when the former one has
// expired.
func TestCloudIdentityReadsPrivatePackages(t *testing.T) {
	for host, machine := range map[string]string{
		amazonHost: "amazon", "acme.azurecr.io": "azure", "europe-docker.pkg.dev": "google",
	} {
		t.Run(machine, func(t *testing.T) {
			var late atomic.Int64
			start := time.Now()
			stand := &clouds.Clouds{Machine: machine, Now: func() time.Time { return start.Add(time.Duration(late.Load())) }}
			source, ref := cloudSource(t, host, stand)
			readable(t, source, fetch.Plain(ref))
			first := stand.Valid()
			late.Store(int64(2 * time.Hour))
			stand.Expire()
			if _, err := resolve(t, source, fetch.Endpoint{Ref: ref}); err != nil {
				t.Errorf("after the token has expired: %v", err)
			}
			if valid := stand.Valid(); valid == "" || valid == first {
				t.Errorf("the token %q was not renewed", valid)
			}
		})
	}
}

// Pull secrets win over the identity, which is then not asked for.
func TestPullSecretsWinOverTheCloudIdentity(t *testing.T) {
	stand := &clouds.Clouds{Machine: "amazon"}
	source, ref := cloudSource(t, amazonHost, stand)
	_, err := resolve(t, source, fetch.Endpoint{Ref: ref, Keychain: keychain(t, amazonHost, "AWS")})
	if !errors.Is(err, remote.ErrUnauthorized) || stand.Asked(amazonAPI) != 0 {
		t.Errorf("got %v; the identity was asked for %d times", err, stand.Asked(amazonAPI))
	}
	if _, err := resolve(t, source, fetch.Endpoint{Ref: ref, Keychain: keychain(t, "other.test", "x")}); err != nil {
		t.Errorf("with a secret for another host: %v", err)
	}
}

// The error of a denied access says why the identity cannot be used, and what to do.
func TestErrorWithoutCloudIdentity(t *testing.T) {
	stand := &clouds.Clouds{Machine: "amazon", Denies: map[string]int{amazonAPI: http.StatusBadRequest}}
	source, ref := cloudSource(t, amazonHost, stand)
	_, err := resolve(t, source, fetch.Endpoint{Ref: ref})
	failed := errcode.From(err)
	if !errors.Is(err, remote.ErrUnauthorized) || failed.Code.Name != remote.ErrUnauthorized.Name ||
		!strings.Contains(err.Error(), "cannot use the AWS identity of this process: "+amazonAPI+" responded with 400") ||
		!strings.Contains(failed.Do, "AmazonEC2ContainerRegistryPullOnly") {
		t.Errorf("got %v\n%s", err, failed.Do)
	}
}

// The host that is contacted determines the identity: a mirror in a cloud gets a token of this cloud, and another
// registry of the package gets none.
func TestCloudIdentityOfAMirror(t *testing.T) {
	stand := &clouds.Clouds{Machine: "amazon"}
	source, ref := cloudSource(t, amazonHost, stand)
	home := newRegistry(t)
	own := push(t, home.address)
	home.does(wants("nobody"))
	readable(t, source, fetch.Origin{Ref: own, Endpoints: []fetch.Endpoint{{Ref: ref}, {Ref: own}}})
	if _, err := resolve(t, source, fetch.Endpoint{Ref: own}); !errors.Is(err, remote.ErrUnauthorized) {
		t.Errorf("got %v", err)
	}
	for _, r := range home.matching("") {
		if a := r.Header.Get("Authorization"); a != "" {
			t.Errorf("%s was sent %q", r.URL.Path, a)
		}
	}
}

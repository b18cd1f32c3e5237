package connection

import (
	"errors"
	"net/http"
	"net/url"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/xpkg-dev/xpkg/internal/up"
	"github.com/xpkg-dev/xpkg/internal/up/datadir"
)

// stoppedError is the error of a request to a control plane of this machine that does not run.
type stoppedError struct {
	error
	// dir is its data directory.
	dir string
}

// Unwrap returns the error of the connection.
func (e *stoppedError) Unwrap() error { return e.error }

// localTransport adds to a refused connection the data directory of the control plane whose kubeconfig is in use.
type localTransport struct {
	http.RoundTripper
	kubeconfigs []string
}

// WrappedRoundTripper returns the transport that sends the requests.
func (t localTransport) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t localTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(req)
	if errors.Is(err, syscall.ECONNREFUSED) {
		for _, file := range t.kubeconfigs {
			if dir := stoppedIn(file, req.URL.Host); dir != "" {
				return nil, &stoppedError{err, dir}
			}
		}
	}
	return resp, err
}

// stoppedIn returns the folder of a kubeconfig with a server, if it is the data directory of a control plane that does
// not run, or "".
func stoppedIn(kubeconfig, host string) string {
	content, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return ""
	}
	for _, cluster := range content.Clusters {
		server, err := url.Parse(cluster.Server)
		if err != nil || server.Host != host {
			continue
		}
		if report, err := up.Status(datadir.OfKubeconfig(kubeconfig)); err == nil && !report.Running &&
			!report.Created.IsZero() {
			return report.DataDir
		}
	}
	return ""
}

// StartCommand returns the command that starts the control plane.
func (e *stoppedError) StartCommand() string { return datadir.StartCommand(e.dir, "--detach") }

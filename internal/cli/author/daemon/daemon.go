// Package daemon reads images from the local Docker daemon.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// ErrNotThere reports that no daemon responds, or that it does not have the image.
var ErrNotThere = errors.New("not in the Docker daemon")

// Daemon is a Docker daemon, or a compatible one such as Podman's.
type Daemon struct {
	// Socket is the path of its Unix socket.
	Socket string
}

// Default returns the daemon of DOCKER_HOST, or the one at the default socket. Only Unix sockets are
// supported; with any other DOCKER_HOST, Save fails with ErrNotThere.
func Default() Daemon {
	host := os.Getenv("DOCKER_HOST")
	if host == "" {
		return Daemon{Socket: "/var/run/docker.sock"}
	}
	path, _ := strings.CutPrefix(host, "unix://")
	if path == host {
		return Daemon{}
	}
	return Daemon{Socket: path}
}

// Save returns an image as an archive in the format of `docker save`. It returns ErrNotThere if the daemon
// does not have the image.
func (d Daemon) Save(ctx context.Context, name string) (io.ReadCloser, error) {
	if d.Socket == "" {
		return nil, fmt.Errorf("%w: DOCKER_HOST is not a Unix socket", ErrNotThere)
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", d.Socket)
		},
	}}
	// The name of an image is one element of the path, including its slashes and colons.
	address := &url.URL{Scheme: "http", Host: "docker", Path: "/images/" + name + "/get", RawPath: "/images/" +
		url.PathEscape(name) + "/get"}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotThere, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return nil, ErrNotThere
	}
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
	return nil, fmt.Errorf("the Docker daemon responded with %d to a request for %s: %q", resp.StatusCode, name, said)
}

package cloudidentity

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
	"unicode"
)

// clients access the services that issue tokens. They follow no redirects: a token or a key could reach another host.
type clients struct {
	now func() time.Time
	// public reaches the APIs of the clouds, through the proxy of the environment.
	public *http.Client
	// metadata reaches the services of the machine and of the node, at fixed addresses and never through a proxy.
	metadata *http.Client
}

func newClients(o Options) clients {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	}
	client := func(t *http.Transport) *http.Client {
		t.DisableKeepAlives = true // A token is requested once an hour, at most.
		t.ResponseHeaderTimeout = 10 * time.Second
		return &http.Client{
			Transport:     t,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return clients{
		now: o.Now,
		public: client(&http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: o.Dial, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: 10 * time.Second,
			TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs, Time: o.Now},
		}),
		metadata: client(&http.Transport{DialContext: newMetadataDialer(o).DialContext}),
	}
}

// metadataDialer connects to the services of the machine, which are near or absent, and remembers those that are
// absent.
type metadataDialer struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	now  func() time.Time

	mu     sync.Mutex
	absent map[string]time.Time
}

func newMetadataDialer(o Options) *metadataDialer {
	return &metadataDialer{dial: o.Dial, now: o.Now, absent: map[string]time.Time{}}
}

// metadataPatience bounds a connection to a service of the machine.
const metadataPatience = time.Second

// DialContext connects to an address.
func (d *metadataDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	d.mu.Lock()
	until := d.absent[address]
	d.mu.Unlock()
	if d.now().Before(until) {
		return nil, errors.New("it does not respond")
	}
	ctx, cancel := context.WithTimeout(ctx, metadataPatience)
	defer cancel()
	conn, err := d.dial(ctx, network, address)
	if err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.absent[address] = d.now().Add(failureLife)
	}
	return conn, err
}

// maxAnswer bounds the response of a token service.
const maxAnswer = 1 << 20

// send sends a request and returns the body of a successful response. The error of another response contains the text
// of its body, which names no secrets.
func send(c *http.Client, req *http.Request) ([]byte, error) {
	resp, err := c.Do(req)
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err // The URL can contain parameters.
	}
	if err != nil {
		return nil, fmt.Errorf("cannot reach %s: %w", req.URL.Host, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the response of %s: %w", req.URL.Host, err)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s responded with %d: %s", req.URL.Host, resp.StatusCode, brief(body))
	}
	return body, nil
}

// postForm sends a form and returns the body of the response.
func postForm(ctx context.Context, c *http.Client, address string, form url.Values) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return send(c, req)
}

// get returns the body of a response of a service of the machine.
func (c clients) get(ctx context.Context, method, address, header, value string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	if value != "" {
		req.Header.Set(header, value)
	}
	return send(c.metadata, req)
}

// decode parses JSON. The error does not quote the content, which contains secrets.
func decode(body []byte, what string, into any) error {
	if json.Unmarshal(body, into) != nil {
		return fmt.Errorf("the %s is not the expected JSON", what)
	}
	return nil
}

// run returns the output of a program of a cloud, and false if it is not installed.
func run(ctx context.Context, name string, args ...string) ([]byte, bool, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, false, nil
	}
	cmd := exec.CommandContext(ctx, path, args...)
	var problem bytes.Buffer
	cmd.Stderr, cmd.WaitDelay = &problem, time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil, true, fmt.Errorf("`%s %s` failed: %w: %s", name, args[0], err, brief(problem.Bytes()))
	}
	return out, true, nil
}

// readFile returns the content of the file with a token that an environment variable names.
func readFile(variable string) (string, error) {
	raw, err := os.ReadFile(os.Getenv(variable))
	if err != nil {
		return "", fmt.Errorf("cannot read the file in %s: %w", variable, err)
	}
	return strings.TrimSpace(string(raw)), nil
}

// brief returns a message of a service or a program in one line.
func brief(message []byte) string {
	const most = 400
	text := strings.Join(strings.FieldsFunc(strings.ToValidUTF8(string(message), ""), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/text"
)

// ErrRegistryUnavailable is the code for a registry that does not respond, or responds
// with a server error.
var ErrRegistryUnavailable = errcode.Code{
	Name: "RegistryUnavailable", Class: errcode.Unavailable,
	Cause: "A registry cannot be reached, is too slow, or responds with an error.",
	Fix:   "Check the registry's name and the network, and try again.",
}

// ErrTLSUntrusted is the code for a registry with an untrusted certificate or an
// insecure protocol.
var ErrTLSUntrusted = errcode.Code{
	Name: "TLSUntrusted", Class: errcode.Untrusted,
	Cause: "The certificate of a registry is not trusted, not valid now or not for this host, or the registry does not support TLS 1.2 or newer.",
	Fix:   "Pass the certificate of its CA with --ca-file, such as --ca-file registry.example.com=ca.pem; only for a registry of your own, skip the check with --insecure-skip-tls-verify.",
}

// ErrThrottled is the code for a request that the registry's rate limit rejects.
var ErrThrottled = errcode.Code{
	Name: "Throttled", Class: errcode.Unavailable,
	Cause: "A registry temporarily rejects requests because there were too many.",
	Fix:   "Wait until the time in the message; many registries have higher limits for authenticated users.",
}

// throttledWithoutTime is the remedy if the registry asks for no time, or only for a short one.
const throttledWithoutTime = "Try again in a few minutes; many registries have higher limits for authenticated users."

// ErrRefused is the code for a request that a registry rejects.
var ErrRefused = errcode.Code{
	Name: "RegistryRefused", Class: errcode.Invalid,
	Cause: "A registry rejects the request or the content.",
	Fix:   "See the registry's error in the message.",
}

// networkError classifies the cause of a missing response.
func (s *session) networkError(ctx context.Context, err error, what string) error {
	switch {
	case errcode.Known(err):
		return err
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("cannot %s: %w", what, context.Cause(ctx))
	case isProxy(err):
		return unreachable(s.opts.Health.pausing(s.scheme+"://"+s.host, reason(err)), what, s.host)
	case withoutTLS(err):
		return ErrTLSUntrusted.New(nil, "cannot %s: registry %s does not use TLS", what, s.host).
			WithDo("If plain HTTP is intended, pass --insecure %s.", s.host)
	case isTLS(err):
		return ErrTLSUntrusted.New(s.tlsReason(err), "cannot %s: registry %s is not trusted", what, s.host).
			WithDo("%s", s.tlsAdvice(err))
	case errors.Is(err, context.DeadlineExceeded):
		return ErrRegistryUnavailable.New(nil, "cannot %s: registry %s is too slow", what, s.host)
	}
	why := s.opts.Health.pausing(s.scheme+"://"+s.host, reason(err))
	if s.scheme == "http" && strings.Contains(err.Error(), "malformed HTTP response") {
		why = s.tlsHint()
	}
	return unreachable(why, what, s.host)
}

// unreachable returns the error for a registry that cannot be reached.
func unreachable(why error, what, host string) error {
	failed := ErrRegistryUnavailable.New(why, "cannot %s: registry %s cannot be reached", what, host)
	if proxy := (*proxyError)(nil); errors.As(why, &proxy) {
		return failed.WithDo("Correct the proxy in HTTPS_PROXY, or add %s to NO_PROXY to connect without it.", hostname(host))
	}
	return failed
}

// proxyError is the error of a connection to a proxy.
type proxyError struct{ why error }

// Error returns the cause.
func (e *proxyError) Error() string { return "its proxy cannot be reached: " + e.why.Error() }

// isProxy reports whether a connection to a proxy failed.
func isProxy(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "proxyconnect"
}

// hostname returns a host without its port.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

// canPass reports whether a network failure may be temporary.
func canPass(err error) bool {
	var dns *net.DNSError
	var wait *retryAfterError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), isTLS(err), errors.As(err, &wait):
		return false
	case errcode.Known(err):
		return errors.Is(err, ErrRegistryUnavailable) && !strings.Contains(err.Error(), "redirects")
	case errors.As(err, &dns):
		return !dns.IsNotFound
	}
	return true
}

// reason returns a description of the most common network errors, without the parts that
// differ between connections.
func reason(err error) error {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case isProxy(err) && errors.As(err, &op):
		return &proxyError{reason(op.Err)}
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Errorf("the host %s does not exist", dns.Name)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it closed the connection")
	case errors.As(err, &op) && op.Source != nil:
		return &net.OpError{Op: op.Op, Net: op.Net, Addr: op.Addr, Err: op.Err}
	}
	return err
}

func isTLS(err error) bool {
	var (
		alert     tls.AlertError
		verify    *tls.CertificateVerificationError
		authority x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
		host      x509.HostnameError
	)
	return withoutTLS(err) || errors.As(err, &alert) || errors.As(err, &verify) ||
		errors.As(err, &authority) || errors.As(err, &invalid) || errors.As(err, &host) ||
		strings.Contains(err.Error(), "tls: ")
}

// withoutTLS reports whether a TLS handshake failed because the registry does not use TLS.
func withoutTLS(err error) bool {
	var record tls.RecordHeaderError
	return errors.As(err, &record) || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client")
}

// tlsReason mentions the clock if the time is outside of the certificate's validity.
func (s *session) tlsReason(err error) error {
	if invalid, ok := isExpired(err); ok && invalid.Cert != nil {
		return fmt.Errorf("its certificate is valid from %s to %s, and the time of this machine is %s",
			invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339),
			s.opts.Now().UTC().Format(time.RFC3339))
	}
	return err
}

// tlsAdvice returns the advice for a registry that is not trusted.
func (s *session) tlsAdvice(err error) string {
	var host x509.HostnameError
	_, expired := isExpired(err)
	switch {
	case expired:
		return "Renew the certificate of the registry, or correct the clock of this machine."
	case errors.As(err, &host):
		return "Use a name of the registry that its certificate contains, or issue a certificate for " + hostname(s.host) +
			"."
	case s.opts.Hosts[s.host].CAAdvice != "":
		return s.opts.Hosts[s.host].CAAdvice
	}
	return fmt.Sprintf(
		"Pass the certificate of its CA, such as --ca-file %s=ca.pem; only for a registry of your own, skip the check with --insecure-skip-tls-verify.",
		s.host,
	)
}

// isExpired returns the error about a certificate that is not valid now.
func isExpired(err error) (x509.CertificateInvalidError, bool) {
	var invalid x509.CertificateInvalidError
	return invalid, errors.As(err, &invalid) && invalid.Reason == x509.Expired
}

// skew returns an error for a clock difference, which invalidates tokens.
func (s *session) skew(resp *http.Response) error {
	const much = 5 * time.Minute
	at, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return nil
	}
	if d := s.opts.Now().Sub(at); d > much || d < -much {
		return fmt.Errorf("the clock of this machine differs from the registry's by %s", d.Abs().Round(time.Second))
	}
	return nil
}

// statusError returns the error for an unexpected response to a call. It reads the body; the caller
// closes it.
func (s *session) statusError(resp *http.Response, c call) error {
	what, why := c.what, registryWords(resp)
	// The response to a HEAD request has no body: a TLS server sends only the status 400.
	if errors.Is(why, errSpeaksTLS) || why == nil && resp.StatusCode == http.StatusBadRequest && s.scheme == "http" {
		why = s.tlsHint()
	}
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return s.denied(c, errors.Join(why, s.skew(resp)), "cannot %s: registry %s denies access", what, s.host)
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		if err := s.throttled(what); err != nil {
			return err
		}
		if code == http.StatusServiceUnavailable {
			return ErrRegistryUnavailable.New(why, "cannot %s: registry %s responded with %d", what, s.host, code)
		}
		return ErrThrottled.New(why, "cannot %s: registry %s is throttled", what, s.host).WithDo(throttledWithoutTime)
	case code >= http.StatusInternalServerError:
		return ErrRegistryUnavailable.New(why, "cannot %s: registry %s responded with %d", what, s.host, code).
			WithDo("Try again later. The log of the registry has the cause.")
	case code == http.StatusRequestTimeout:
		return ErrRegistryUnavailable.New(why, "cannot %s: registry %s responded with %d", what, s.host, code)
	case code >= http.StatusMultipleChoices && code < http.StatusBadRequest:
		return ErrRefused.New(why, "cannot %s: registry %s sent a redirect that is not allowed (%d)", what, s.host, code)
	}
	return ErrRefused.New(why, "cannot %s: registry %s responded with %d", what, s.host, resp.StatusCode)
}

// tlsHint returns the probable reason why a registry does not understand plain HTTP.
func (s *session) tlsHint() error {
	return fmt.Errorf("%w; if so, pass the certificate of its CA with --ca-file %s=ca.pem", errSpeaksTLS, s.host)
}

// errSpeaksTLS is the cause if a TLS server received a plain HTTP request.
var errSpeaksTLS = errors.New(
	"it was contacted with plain HTTP, the default for loopback registries, but seems to use TLS",
)

// registryWords returns the errors in a registry's response (OCI distribution
// specification, "Error Codes"), without characters that could affect a terminal.
func registryWords(resp *http.Response) error {
	const most = 64 << 10
	var body struct {
		Errors []struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil || json.Unmarshal(data, &body) != nil || len(body.Errors) == 0 {
		if strings.Contains(string(data), "HTTP request to an HTTPS server") {
			return errSpeaksTLS
		}
		return nil
	}
	first := body.Errors[0]
	return &responseError{
		first.Code, text.ClipTo(printable(strings.Trim(first.Code+": "+first.Message, ": ")), maxMessage),
	}
}

// responseError is the first error in a response of a registry.
type responseError struct{ code, text string }

// Error returns the code and the message, without characters that could affect a terminal.
func (e *responseError) Error() string { return e.text }

// CodeDamaged is the error code in the responses of a registry server of xpkg for a repository whose files are damaged.
// It serves all others.
const CodeDamaged = "REPOSITORY_DAMAGED"

// ResponseCode returns the error code in the response of a registry (OCI distribution specification, "Error Codes"),
// such as DENIED, or "" if err has none. Registries can define codes of their own.
func ResponseCode(err error) string {
	var e *responseError
	if errors.As(err, &e) {
		return e.code
	}
	return ""
}

// printable removes control characters.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || wording.Invisible(r) {
			return -1
		}
		return r
	}, s)
}

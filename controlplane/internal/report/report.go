// Package report defines the reports of the control plane to its parent process, lines of JSON on standard output: that
// it serves or why it could not start, and after the former a second line when all health checks have passed. All other
// output goes to standard error.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Ready is the first line of a control plane that answers requests.
type Ready struct {
	// Server is the URL of the API server, for example "https://127.0.0.1:16443".
	Server string `json:"server"`
	// Kubeconfig is the absolute path of the administrator's kubeconfig.
	Kubeconfig string `json:"kubeconfig"`
	// Kubernetes is the version of the API server, for example "v1.37.1".
	Kubernetes string `json:"kubernetes"`
	// PID is the process that serves.
	PID int `json:"pid"`
}

// Code is the reason why the control plane did not start. The values are part of the contract with the parent
// process.
type Code string

// The codes of a start that failed.
const (
	// Usage is a flag that is missing, unknown or out of range.
	Usage Code = "Usage"
	// DataDirUnusable is a data directory that cannot be made, read or written.
	DataDirUnusable Code = "DataDirUnusable"
	// DataDirInUse is a data directory that another control plane holds.
	DataDirInUse Code = "DataDirInUse"
	// PortInUse is a port that another program listens on.
	PortInUse Code = "PortInUse"
	// StartFailed is everything else: etcd, the API server or a controller gave up.
	StartFailed Code = "StartFailed"
)

// Failure is an error with the code that the starting process decides by.
type Failure struct {
	Code Code   `json:"code"`
	Text string `json:"message"`
	err  error
}

// Fail returns an error with the text "what: cause". The cause may be nil.
func Fail(code Code, cause error, what string, args ...any) *Failure {
	text := fmt.Sprintf(what, args...)
	if cause != nil {
		text += ": " + cause.Error()
	}
	return &Failure{Code: code, Text: text, err: cause}
}

// Error returns the text of the failure.
func (f *Failure) Error() string { return f.Text }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.err }

// WriteReady writes the first line of a control plane that answers requests.
func WriteReady(w io.Writer, r Ready) error { return json.NewEncoder(w).Encode(r) }

// WriteHealthy writes the second line, after all health checks of the API server have passed and the controllers work.
func WriteHealthy(w io.Writer) error {
	return json.NewEncoder(w).Encode(map[string]bool{"healthy": true})
}

// WriteError writes the line of a start that failed. An error without a code is a
// StartFailed.
func WriteError(w io.Writer, err error) error {
	var f *Failure
	if !errors.As(err, &f) {
		f = Fail(StartFailed, nil, "%v", err)
	}
	return json.NewEncoder(w).Encode(map[string]*Failure{"error": f})
}

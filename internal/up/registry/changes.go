package registry

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Use is a reference of an installed package to this registry.
type Use struct {
	// Package names the package, for example "provider/provider-hello".
	Package string
	// Repository, Tag and Digest are the parts of the reference without the registry. Digest is
	// empty if the reference has none.
	Repository, Tag, Digest string
	// Follows reports whether the package is updated when the tag moves
	// (packagePullPolicy: Always).
	Follows bool
}

// Uses returns the uses of a registry at host:port.
type Uses func(ctx context.Context, host string) ([]Use, error)

// change describes a manifest that a request replaces or deletes.
type change struct {
	repository string
	// tag is the tag in the request, and tags are all affected tags: a deletion by digest names no
	// tag, and deletes every tag of the manifest.
	tag  string
	tags []string
	// from and to are digests; to is empty for a deletion.
	from, to string
}

// reportChanges forwards requests, and reports requests that change the content of a
// reference of an installed package: in a Warning header, which clients show, and with
// o.Report.
func reportChanges(o Options, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		changes := o.changesOf(r)
		if len(changes) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(&warningWriter{ResponseWriter: w, warnings: func(status int) []string {
			if status >= http.StatusMultipleChoices {
				return nil
			}
			var messages []string
			for _, c := range changes {
				if r.Method == http.MethodPut {
					c.to = w.Header().Get("Docker-Content-Digest")
				}
				messages = append(messages, o.report(r, c)...)
			}
			return messages
		}}, r)
	})
}

// changesOf returns the changes of existing references that a request makes.
func (o Options) changesOf(r *http.Request) []change {
	if o.Uses == nil {
		return nil
	}
	var changes []change
	for _, c := range requestedChanges(r) {
		tags, _, err := o.Store.Tags(c.repository)
		if err != nil {
			continue // The request fails for the same reason.
		}
		switch {
		case c.tag != "":
			c.from, c.tags = string(tags[c.tag]), []string{c.tag}
		default:
			for tag, d := range tags {
				if string(d) == c.from {
					c.tags = append(c.tags, tag)
				}
			}
		}
		if c.from != "" {
			changes = append(changes, c)
		}
	}
	return changes
}

// requestedChanges returns the references that a request writes or deletes.
func requestedChanges(r *http.Request) []change {
	if r.Method != http.MethodPut && r.Method != http.MethodDelete {
		return nil
	}
	path, ok := strings.CutPrefix(r.URL.Path, pingPath)
	i := strings.LastIndex(path, "/manifests/")
	if !ok || i < 0 {
		return nil
	}
	repository, reference := path[:i], path[i+len("/manifests/"):]
	switch {
	case !strings.Contains(reference, ":"):
		return []change{{repository: repository, tag: reference}}
	case r.Method == http.MethodDelete:
		return []change{{repository: repository, from: reference}}
	}
	return nil
}

// report reports a change and returns the messages about it.
func (o Options) report(r *http.Request, c change) []string {
	if c.from == c.to {
		return nil
	}
	uses, err := o.Uses(r.Context(), r.Host)
	messages := messagesOf(r.Host, c, uses)
	if err != nil {
		messages = append(
			messages, fmt.Sprintf("cannot check whether an installed package refers to %s: %v", c.reference(r.Host), err),
		)
	}
	if o.Report != nil {
		for _, m := range messages {
			o.Report(m)
		}
	}
	return messages
}

// messagesOf returns a message for each package that a change affects.
func messagesOf(host string, c change, uses []Use) []string {
	var messages []string
	for _, use := range uses {
		if use.Repository != c.repository || !c.affects(use) {
			continue
		}
		message := fmt.Sprintf("%s is installed from %s, which ", use.Package, c.reference(host))
		switch {
		case c.to == "":
			message += "was deleted; push it again, or install another version"
		case use.Follows:
			message += fmt.Sprintf(
				"moved from %s to %s; the package is updated, because its packagePullPolicy is Always", short(c.from), short(c.to),
			)
		default:
			message += fmt.Sprintf("moved from %s to %s; the package keeps the old content until its spec changes. "+
				"Push a new version under a new tag instead", short(c.from), short(c.to))
		}
		messages = append(messages, message)
	}
	return messages
}

// affects reports whether a change affects a reference. Only the deletion of its digest affects a
// reference with a digest.
func (c change) affects(use Use) bool {
	if use.Digest != "" {
		return c.to == "" && c.tag == "" && use.Digest == c.from
	}
	return slices.Contains(c.tags, use.Tag)
}

func (c change) reference(host string) string {
	if c.tag == "" {
		return host + "/" + c.repository + "@" + short(c.from)
	}
	return host + "/" + c.repository + ":" + c.tag
}

// short returns the short form of a digest, for users.
func short(digest string) string {
	if d, err := oci.ParseDigest(digest); err == nil {
		return d.Short()
	}
	return digest
}

// warningWriter adds Warning headers to a response, as the OCI distribution specification describes
// ("Warnings").
type warningWriter struct {
	http.ResponseWriter
	warnings func(status int) []string
}

// WriteHeader implements [http.ResponseWriter].
func (w *warningWriter) WriteHeader(status int) {
	for _, m := range w.warnings(status) {
		w.Header().Add("Warning", `299 - "`+quotedText.Replace(m)+`"`)
	}
	w.ResponseWriter.WriteHeader(status)
}

// quotedText escapes a quoted string of an HTTP header.
var quotedText = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ", "\r", " ")

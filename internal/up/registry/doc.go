// Package registry protects the OCI registry of a control plane that runs on this
// machine. It wraps the handler that stores the images.
//
// Reads are anonymous, so that the manager, kubelets and runtimes need no secret.
// Writes need the token of the control plane, because every process of this
// machine, a runtime in its sandbox too, reaches the loopback interface. Clients
// get access by the token authentication of registries: a request without
// credentials is answered with a Bearer challenge, and the token server, a path of
// the same registry, exchanges the user's credentials for a bearer token. Clients
// without credentials get a token that allows reads.
package registry

import "net/http"

// Options configure the protection of a registry.
type Options struct {
	// Token is the secret that allows writes. Basic credentials carry it as the
	// password, with any user name.
	Token string
	// Login is the command that stores the token for other clients, for error messages.
	Login string
	// MaxUpload bounds the bytes of one blob.
	MaxUpload int64
	// Uses returns the references that installed packages have into this registry.
	// It is called when a tag moves or content is deleted; nil reports nothing.
	Uses Uses
	// Report gets a message for the user about each change of content that an
	// installed package refers to; it may be nil.
	Report func(message string)
}

// Handler returns a handler that passes only permitted requests to images.
func Handler(images http.Handler, o Options) http.Handler {
	return guard(authorize(o, limitUploads(o.MaxUpload, reportChanges(o, images))))
}

package apis

import "k8s.io/apimachinery/pkg/runtime"

// NewScheme returns a scheme with all types of xpkg.
func NewScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, AddToScheme(s)
}

package apis

import "k8s.io/apimachinery/pkg/runtime"

// NewScheme gives a scheme with all types of xpkg.
func NewScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, AddToScheme(s)
}

package registry

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestRequestsOfWebPagesAreRefused(t *testing.T) {
	handler := guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	tests := map[string]struct {
		host, origin string
		want         int
	}{
		"address":      {"127.0.0.1:15000", "", http.StatusOK},
		"name":         {"localhost:15000", "", http.StatusOK},
		"IPv6":         {"[::1]:15000", "", http.StatusOK},
		"without port": {"localhost", "", http.StatusOK},
		"rebinding":    {"evil.example:15000", "", http.StatusForbidden},
		"other site":   {"127.0.0.1:15000", "https://evil.example", http.StatusForbidden},
		"null origin":  {"127.0.0.1:15000", "null", http.StatusForbidden},
		"own origin":   {"127.0.0.1:15000", "http://127.0.0.1:15000", http.StatusForbidden},
		"no host":      {"", "", http.StatusForbidden},
		"other host":   {"192.168.1.1:15000", "", http.StatusForbidden},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodOptions} {
				request := httptest.NewRequest(method, "/v2/", nil)
				request.Host = test.host
				if test.origin != "" {
					request.Header.Set("Origin", test.origin)
				}
				response := httptest.NewRecorder()
				handler.ServeHTTP(response, request)
				if response.Code != test.want {
					t.Errorf("%s: got %d, want %d", method, response.Code, test.want)
				}
			}
		})
	}
}

package rehearsal

import (
	"bytes"
	"io"
	"net/http"
	"sync"
)

// Recording hands the exact body of each POST to save, numbered from 1 in the order in which they were in, before h
// answers it. Calls of save do not overlap; when it fails, the request is answered with status 500.
func Recording(h http.Handler, save func(n int, body []byte) error) http.Handler {
	var mu sync.Mutex
	n := 0
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return // the client is gone
			}
			mu.Lock()
			n++
			err = save(n, body)
			mu.Unlock()
			if err != nil {
				refuse(w, http.StatusInternalServerError, "the body could not be recorded: "+err.Error())
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		h.ServeHTTP(w, r)
	})
}

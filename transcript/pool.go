package transcript

import (
	"context"
	"database/sql"
	"sync"
)

// pool are the connections that read. Each understands a query once: that is most of what a small one costs.
type pool struct {
	*sql.DB

	mu    sync.Mutex
	stmts map[string]*sql.Stmt // by their query
}

// poolBound is how many queries are kept. Nearly all are constants; one that is put together for its case is not worth it.
const poolBound = 100

func newPool(db *sql.DB) *pool { return &pool{DB: db, stmts: map[string]*sql.Stmt{}} }

// prepared returns the statement of a query, made when first used; nil when as many are kept as may be, or q cannot be
// prepared: then it is sent as it is, and says itself what is wrong.
func (p *pool) prepared(ctx context.Context, q string) *sql.Stmt {
	p.mu.Lock()
	st, kept := p.stmts[q], len(p.stmts)
	p.mu.Unlock()
	if st != nil || kept >= poolBound {
		return st
	}
	st, err := p.PrepareContext(ctx, q)
	if err != nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if other := p.stmts[q]; other != nil {
		_ = st.Close() // another goroutine was faster
		return other
	}
	p.stmts[q] = st
	return st
}

// QueryContext is that of the database, with the query prepared.
func (p *pool) QueryContext(ctx context.Context, q string, args ...any) (*sql.Rows, error) {
	if st := p.prepared(ctx, q); st != nil {
		return st.QueryContext(ctx, args...)
	}
	return p.DB.QueryContext(ctx, q, args...)
}

// QueryRowContext is that of the database, with the query prepared.
func (p *pool) QueryRowContext(ctx context.Context, q string, args ...any) *sql.Row {
	if st := p.prepared(ctx, q); st != nil {
		return st.QueryRowContext(ctx, args...)
	}
	return p.DB.QueryRowContext(ctx, q, args...)
}

"""LightGBM and XGBoost train with our objectives, in all their forms, and stop early by our metrics."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankwise.boosting import SURROGATES, metric, objective
from rankwise.metrics import per_query

TREES = 25
QUIET: dict[str, Any] = {"verbose": -1, "num_threads": 1, "seed": 0}
JUDGE = "ndcg@10"


def ndcg(scores: Any, data: Any) -> float:
    return float(np.nanmean(per_query(JUDGE, scores, data.y, data.qid)[1]))


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("loss", ["ndcg@30", "ap"])
def test_all_forms_of_lightgbm_train_alike_and_far_better_than_a_constant(
    surrogate: str, loss: str, train: Any, valid: Any
) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    native = lightgbm.train(
        QUIET | {"objective": objective(loss, surrogate)}, lightgbm.Dataset(train.X, train.y, group=train.group), TREES
    )
    settings = {"n_estimators": TREES, "verbose": -1, "n_jobs": 1, "random_state": 0}
    ranker = lightgbm.LGBMRanker(objective=objective(loss, surrogate), **settings)
    ranker.fit(train.X, train.y, group=train.group)
    mixed = train.in_any_order()
    by_qid = lightgbm.LGBMRegressor(objective=objective(loss, surrogate, qid=mixed.qid), **settings)
    by_qid.fit(mixed.X, mixed.y)
    constant = ndcg(np.zeros(valid.y.size), valid)
    np.testing.assert_array_equal(native.predict(valid.X), ranker.predict(valid.X))
    for model in (native, by_qid):
        assert ndcg(model.predict(valid.X), valid) > constant + 0.2


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_xgboost_trains_at_its_default_settings(surrogate: str, train: Any, valid: Any) -> None:
    xgboost = pytest.importorskip("xgboost")
    held = xgboost.DMatrix(valid.X, valid.y, qid=valid.qid)
    constant = ndcg(np.zeros(valid.y.size), valid)
    mixed = train.in_any_order()
    in_groups, in_any_order = xgboost.DMatrix(train.X, train.y, group=train.group), xgboost.DMatrix(mixed.X, mixed.y)
    for data, qid in ((in_groups, None), (in_any_order, mixed.qid)):
        model = xgboost.train({"nthread": 1}, data, TREES, obj=objective("ndcg@30", surrogate, qid=qid))
        assert ndcg(model.predict(held), valid) > constant + 0.2


def test_lightgbm_stops_early_by_our_metric_where_it_is_highest(train: Any, valid: Any) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    data = lightgbm.Dataset(train.X, train.y, group=train.group)
    held = lightgbm.Dataset(valid.X, valid.y, group=valid.group, reference=data)
    seen: dict[str, Any] = {}
    model = lightgbm.train(
        QUIET | {"objective": objective(), "metric": "None"}, data, 200, valid_sets=[held], feval=metric(JUDGE),
        callbacks=[lightgbm.early_stopping(5, verbose=False), lightgbm.record_evaluation(seen)],
    )  # fmt: skip
    values = seen["valid_0"][JUDGE]
    assert len(values) < 200
    assert model.best_iteration == int(np.argmax(values)) + 1
    best = ndcg(model.predict(valid.X, num_iteration=model.best_iteration), valid)
    np.testing.assert_allclose(best, max(values), rtol=1e-12)
    ranker = lightgbm.LGBMRanker(objective=objective(), metric="None", n_estimators=200, verbose=-1, n_jobs=1)
    new = "eval_X" in inspect.signature(ranker.fit).parameters  # since 4.7, which warns of the other way
    held = {"eval_X": (valid.X,), "eval_y": (valid.y,)} if new else {"eval_set": [(valid.X, valid.y)]}
    ranker.fit(
        train.X, train.y, group=train.group, **held, eval_group=[valid.group],
        eval_metric=metric(JUDGE), callbacks=[lightgbm.early_stopping(5, verbose=False)],
    )  # fmt: skip
    values = ranker.evals_result_["valid_0"][JUDGE]
    assert ranker.best_iteration_ == int(np.argmax(values)) + 1 < 200


def test_xgboost_stops_early_by_our_metric_where_it_is_highest(train: Any, valid: Any) -> None:
    xgboost = pytest.importorskip("xgboost")
    data, held = (xgboost.DMatrix(part.X, part.y, qid=part.qid) for part in (train, valid))
    for name, maximize in ((JUDGE, None), ("mrr", True)):
        seen: dict[str, Any] = {}
        model = xgboost.train(
            {"nthread": 1, "disable_default_eval_metric": True}, data, 200, obj=objective(), custom_metric=metric(name),
            evals=[(held, "held")], early_stopping_rounds=5, evals_result=seen, maximize=maximize, verbose_eval=False,
        )  # fmt: skip
        values = seen["held"][name]
        assert model.best_iteration == int(np.argmax(values)) < 199


def test_a_saved_model_needs_no_rankwise_and_folds_have_their_own_groups(train: Any, tmp_path: Path) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    data = lightgbm.Dataset(train.X, train.y, group=train.group)
    model = lightgbm.train(QUIET | {"objective": objective()}, data, 5)
    model.save_model(tmp_path / "model.txt")
    assert "rankwise" not in (tmp_path / "model.txt").read_text(encoding="utf-8")
    again = lightgbm.Booster(model_file=tmp_path / "model.txt")
    np.testing.assert_array_equal(again.predict(train.X), model.predict(train.X))
    data = lightgbm.Dataset(train.X, train.y, group=train.group)
    folds = [(np.flatnonzero(train.qid % 3 != k), np.flatnonzero(train.qid % 3 == k)) for k in range(3)]
    settings = QUIET | {"objective": objective(), "metric": "None"}
    values = lightgbm.cv(settings, data, 5, folds=folds, feval=metric(JUDGE))[f"valid {JUDGE}-mean"]
    assert len(values) == 5
    assert values[-1] > values[0] - 0.05

"""Functions of SciPy and estimators of scikit-learn that accept arrays of the array API, on arrays of Duet.
Results are those on NumPy's arrays."""

import os

os.environ.setdefault('SCIPY_ARRAY_API', '1')  # SciPy reads it when it is imported
import numpy as np  # noqa: E402
import pytest  # noqa: E402

import duet  # noqa: E402

scipy = pytest.importorskip('scipy')
pytestmark = pytest.mark.filterwarnings('ignore')


def data(rng):
    x = rng.normal(size=(200, 6))
    y = x @ rng.normal(size=6) + 0.1 * rng.normal(size=200)
    return x, y, (y > 0).astype(np.int64)


def check(f, rng, rtol=1e-6):
    case = data(rng)
    got = f(*[duet.asarray(a) for a in case])
    want = f(*case)
    for a, b in zip(got, want):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape
        assert np.allclose(np.abs(a), np.abs(b), rtol=rtol, atol=1e-8)  # the signs of vectors may differ


def fitted(estimator, *names, predict=None):
    def f(x, y, labels):
        e = estimator()
        e.fit(x, labels if predict == 'labels' else y)
        results = [getattr(e, n) for n in names]
        if predict:
            results.append(e.predict(x))
        if hasattr(e, 'transform'):
            results.append(e.transform(x))
        for r in results:
            assert isinstance(r, duet.Array) == isinstance(x, duet.Array)
        return results

    return f


def estimators():
    pytest.importorskip('sklearn')
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import Ridge, RidgeCV
    from sklearn.mixture import GaussianMixture
    from sklearn.naive_bayes import GaussianNB
    from sklearn.preprocessing import (
        MaxAbsScaler,
        MinMaxScaler,
        Normalizer,
        PolynomialFeatures,
        StandardScaler,
    )

    return {
        'PCA full': fitted(lambda: PCA(3, svd_solver='full'), 'components_', 'explained_variance_'),
        'PCA eigh': fitted(lambda: PCA(3, svd_solver='covariance_eigh'), 'components_'),
        'PCA random': fitted(
            lambda: PCA(3, svd_solver='randomized', random_state=0, power_iteration_normalizer='QR'),
            'components_',
        ),
        'Ridge': fitted(lambda: Ridge(0.5, solver='svd'), 'coef_', predict='values'),
        'RidgeCV': fitted(RidgeCV, 'coef_', predict='values'),
        'discriminant': fitted(lambda: LinearDiscriminantAnalysis(solver='svd'), 'coef_', predict='labels'),
        'naive Bayes': fitted(GaussianNB, 'theta_', 'var_', predict='labels'),
        'mixture': fitted(lambda: GaussianMixture(2, random_state=0, init_params='random'), 'means_'),
        'StandardScaler': fitted(StandardScaler, 'mean_'),
        'MinMaxScaler': fitted(MinMaxScaler, 'data_min_'),
        'MaxAbsScaler': fitted(MaxAbsScaler, 'scale_'),
        'Normalizer': fitted(Normalizer),
        'PolynomialFeatures': fitted(PolynomialFeatures),
    }


@pytest.mark.parametrize(
    'name',
    [
        'PCA full',
        'PCA eigh',
        'PCA random',
        'Ridge',
        'RidgeCV',
        'discriminant',
        'naive Bayes',
        'mixture',
        'StandardScaler',
        'MinMaxScaler',
        'MaxAbsScaler',
        'Normalizer',
        'PolynomialFeatures',
    ],
)
def test_scikit_learn(name, rng):
    f = estimators()[name]
    from sklearn import config_context

    with config_context(array_api_dispatch=True):
        check(f, rng)


def functions():
    import scipy.cluster.vq
    import scipy.fft
    import scipy.integrate
    import scipy.signal
    import scipy.special
    import scipy.stats

    return {
        'logsumexp': lambda x, y, n: [scipy.special.logsumexp(x, axis=1)],
        'softmax': lambda x, y, n: [scipy.special.softmax(x, axis=1)],
        'zscore': lambda x, y, n: [scipy.stats.zscore(x)],
        'skew': lambda x, y, n: [scipy.stats.skew(x)],
        'kurtosis': lambda x, y, n: [scipy.stats.kurtosis(x)],
        'pearsonr': lambda x, y, n: scipy.stats.pearsonr(x[:, 0], y),
        'ttest': lambda x, y, n: scipy.stats.ttest_1samp(x, 0.0),
        'fft': lambda x, y, n: [scipy.fft.fft(x)],
        'rfftn': lambda x, y, n: [scipy.fft.rfftn(x)],
        'whiten': lambda x, y, n: [scipy.cluster.vq.whiten(x)],
        'vq': lambda x, y, n: scipy.cluster.vq.vq(x, x[:3, :]),
        'k-means': lambda x, y, n: scipy.cluster.vq.kmeans2(x, x[:3, :], minit='matrix'),
        'trapezoid': lambda x, y, n: [scipy.integrate.trapezoid(x)],
        'detrend': lambda x, y, n: [scipy.signal.detrend(x)],
        'hilbert': lambda x, y, n: [scipy.signal.hilbert(x)],
        'fftconvolve': lambda x, y, n: [scipy.signal.fftconvolve(x, x[:3, :3])],
    }


@pytest.mark.parametrize(
    'name',
    [
        'logsumexp',
        'softmax',
        'zscore',
        'skew',
        'kurtosis',
        'pearsonr',
        'ttest',
        'fft',
        'rfftn',
        'whiten',
        'vq',
        'k-means',
        'trapezoid',
        'detrend',
        'hilbert',
        'fftconvolve',
    ],
)
def test_scipy(name, rng):
    if tuple(map(int, scipy.__version__.split('.')[:2])) < (1, 15):
        pytest.skip('needs SciPy 1.15')
    check(functions()[name], rng)
